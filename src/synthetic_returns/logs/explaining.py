"""From a log of episodes to an explanation of it: fit on a part, score on the rest, pay all."""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from synthetic_returns.logs.dataset import find_logs
from synthetic_returns.logs.files import LogFile
from synthetic_returns.logs.page import Explained, write_explanation
from synthetic_returns.recorded.credit import Credit
from synthetic_returns.recorded.format import read_format
from synthetic_returns.recorded.score import Score
from synthetic_returns.utils.archives import read_arrays
from synthetic_returns.utils.files import RunError, acquire_lock, write_atomically
from synthetic_returns.utils.reading import read_json

__all__ = ["explain_log"]

TEST_EVERY = 5  # one episode in so many is not fitted, and says how good the rest was
SCORED = 2000  # of these, at most
SAMPLED_STEPS = 20_000  # from which the kinds of states are found
SHOWN = 6  # episodes on the page
MODEL, SETTINGS, LENGTHS = "credit.npz", "settings.json", "lengths.npz"
REWARDS, SCORE, PAGE = "rewards", "score.json", "explanation.html"

Progress = Callable[[str, float], None]


def explain_log(
    data: str | Path, out: Path, credit: Credit, *, overwrite: bool = False, progress: Progress
) -> Path:
    """Explains a log; continues where it stopped. Returns the page.

    Args:
      data: what ``find_logs`` understands.
      out: the folder that everything is written to.
      credit: with its settings, not fitted.
      overwrite: start again where ``out`` holds the explanation of other data or settings.
      progress: called with what is being done and the share of it that is done.
    """
    logs = find_logs(data)
    settings = _settings(logs, credit)
    lock = _prepare(out, settings, overwrite)
    try:
        if not (out / MODEL).exists():
            _fit(logs, credit, out, progress)
        credit = Credit.load(out / MODEL, encoder=credit.encoder)
        lengths = read_arrays(out / LENGTHS, "start again with --overwrite")
        if lengths.keys() != {str(index) for index in range(len(logs))}:
            raise RunError(f"{out / LENGTHS} is of other files: start again with --overwrite")
        for index, log in enumerate(logs):
            written = out / REWARDS / log.name
            if not written.exists():  # only whole files have their names
                _write(log, written, credit, lengths[str(index)], progress)
        explained = _explain(logs, credit, settings, progress)
        write_atomically(out / SCORE, json.dumps(explained.score.figures(), indent=2) + "\n")
        return write_explanation(out / PAGE, explained)
    finally:
        lock.close()


def _settings(logs: Sequence[LogFile], credit: Credit) -> dict[str, Any]:
    """What has to be the same for a stopped explanation to go on."""
    return {
        "data": [str(log.path.resolve() if log.path.exists() else log.path) for log in logs],
        "bytes": [log.path.stat().st_size if log.path.is_file() else 0 for log in logs],
        "method": repr(credit.method),
        "updates": credit.updates,
        "seed": credit.seed,
    }


def _prepare(out: Path, settings: dict[str, Any], overwrite: bool) -> Any:
    if out.exists() and not out.is_dir():
        raise RunError(f"{out} is a file: choose another --out")
    written = out / SETTINGS
    if written.exists():
        other = read_json(written, "choose another --out") != settings
        # Before there is a model, nothing was made: the data were refused, and mended since.
        if other and not overwrite and (out / MODEL).exists():
            raise RunError(
                f"{out} holds the explanation of other data, or with other settings: choose "
                "another --out, or replace it with --overwrite"
            )
    elif out.exists() and any(out.iterdir()):
        raise RunError(f"{out} is not empty and was not made by this command: choose another --out")
    out.mkdir(parents=True, exist_ok=True)
    lock = acquire_lock(out / ".lock", f"process {{owner}} is writing to {out}: wait for it")
    if overwrite:
        made = (out / name for name in (MODEL, LENGTHS, SCORE, PAGE))
        for old in (*made, *(out / REWARDS).glob("*")):
            old.unlink(missing_ok=True)
    write_atomically(written, json.dumps(settings, indent=2) + "\n")
    (out / REWARDS).mkdir(exist_ok=True)
    return lock


def _fit(logs: Sequence[LogFile], credit: Credit, out: Path, progress: Progress) -> None:
    """Looks at all data once, then learns from most of them."""
    lengths: dict[str, np.ndarray] = {}

    def looked_at() -> Iterator[Any]:
        for index, log in enumerate(logs):
            found = []
            for episode in log.read():
                found.append(len(episode))
                yield episode
            lengths[str(index)] = np.array(found, np.int64)
            progress("looking", (index + 1) / len(logs))

    format = read_format(looked_at(), standardised=credit.encoder is None)
    if _count(lengths) < 2 * TEST_EVERY:
        raise RunError(
            f"number of episodes: {_count(lengths)}; at least {2 * TEST_EVERY} are needed to "
            "learn from some and test on others, hundreds to find anything"
        )
    credit.fit(
        _Part(logs, test=False),
        format,
        progress=lambda done, least: progress("learning", min(1.0, done / least)),
    )
    np.savez(out / LENGTHS, allow_pickle=False, **lengths)
    credit.save(out / MODEL)


class _Part:
    """The episodes of a log that are fitted, or those that are not; can be read again and again."""

    def __init__(self, logs: Sequence[LogFile], *, test: bool):
        self._logs, self._test = logs, test

    def __iter__(self) -> Iterator[Any]:
        number = itertools.count()
        for log in self._logs:
            for episode in log.read():
                if (next(number) % TEST_EVERY == TEST_EVERY - 1) == self._test:
                    yield episode


def _write(
    log: LogFile, path: Path, credit: Credit, lengths: np.ndarray, progress: Progress
) -> None:
    def paid() -> Iterator[np.ndarray]:
        for number, episode in enumerate(log.read()):
            progress(f"writing {log.name}", number / max(1, len(lengths)))
            yield credit.redistribute(episode)

    log.write(path, paid(), lengths)


def _explain(
    logs: Sequence[LogFile], credit: Credit, settings: dict[str, Any], progress: Progress
) -> Explained:
    """What the page shows, from episodes that were not fitted."""
    foreseen, earned, returns = [], [], []
    states, paid, sampled, steps = [], [], [], 0
    for number, episode in enumerate(itertools.islice(_Part(logs, test=True), SCORED)):
        progress("scoring", number / SCORED)
        rewards = credit.redistribute(episode)
        foreseen.append(rewards[:-1].sum())
        earned.append(episode.reward[:-1].sum())
        returns.append(episode.reward.sum())
        if steps < SAMPLED_STEPS and len(episode) > 1:
            # The last step settles: what it is paid says nothing about its state.
            states.append(episode.observation[1:-1])
            paid.append((rewards - episode.reward)[:-1])
            steps += len(episode)
        if len(sampled) < 50 * SHOWN:
            sampled.append(episode)
    return Explained(
        settings=settings,
        credit=credit,
        score=Score(np.array(foreseen), np.array(earned), np.array(returns)),
        states=np.concatenate(states) if states else np.zeros((0, 1)),
        paid=np.concatenate(paid) if paid else np.zeros(0),
        episodes=_extremes(sampled),
    )


def _extremes(episodes: Sequence[Any]) -> Sequence[Any]:
    """Some of the best and the worst."""
    order = sorted(episodes, key=lambda one: -float(one.reward.sum()))
    half = SHOWN // 2
    return order if len(order) <= SHOWN else [*order[:half], *order[-half:]]


def _count(lengths: dict[str, np.ndarray]) -> int:
    return sum(len(x) for x in lengths.values())
