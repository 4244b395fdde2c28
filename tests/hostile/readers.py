"""All that reads files which others may have written, each with a sound file to start from."""

import dataclasses
import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.cli import _is_message
from synthetic_returns.experiments.catalog import EXPERIMENTS
from synthetic_returns.experiments.experiment import EPISODIC
from synthetic_returns.logs.dataset import find_logs
from synthetic_returns.recorded.credit import Credit
from synthetic_returns.recorded.format import read_format
from synthetic_returns.report.run_record import RunRecord
from synthetic_returns.training.checkpoints import Checkpoints
from synthetic_returns.training.loading import load_run
from synthetic_returns.training.traces import SUFFIXES, read_traces
from synthetic_returns.utils.tables import read_csv
from synthetic_returns.viewer.opened_run import OpenedRun
from synthetic_returns.wrappers.vector import SyntheticReturnsVectorWrapper
from tests.experiments.fake_runs import fake_run
from tests.wrappers.small import METHOD


@dataclasses.dataclass(frozen=True)
class Reader:
    """Something that reads.

    Attributes:
      make: writes sound files into a folder.
      read: reads them; whatever is wrong with one may only be a ValueError that names it.
      files: which of them are changed.
      cost: how many times slower it is than the others.
    """

    make: Callable[[Path], None]
    read: Callable[[Path], Any]
    files: str
    cost: int = 1


def _fake_run(folder: Path) -> None:
    shutil.move(fake_run(EXPERIMENTS["chain"], EPISODIC, 0, folder, most_traces=3), folder / "run")


def _read_run(folder: Path) -> None:
    record = RunRecord.read(OpenedRun.open(folder / "run"))
    record.solved_at(0.9)


def _read_traces(folder: Path) -> None:
    for player in SUFFIXES:
        for trace in read_traces(folder / "run", player):
            trace.explanation.per_state()


def load_agent(folder: Path) -> None:
    opened = OpenedRun.open(folder / "run")
    load_run(opened.path, opened.config)


STATE = {"w": jnp.ones((3, 2)), "key": jax.random.key(3), "n": 4, "empty": np.zeros((0, 2))}
REPLAY = {"observation": np.ones((20, 3), np.uint8), "reward": np.ones(20, np.float32)}


def _save_checkpoint(folder: Path) -> None:
    Checkpoints(folder / "checkpoints").save(3, STATE, REPLAY)


def _restore(folder: Path) -> None:
    Checkpoints(folder / "checkpoints").restore(STATE)


def _restore_replay(folder: Path) -> None:
    Checkpoints(folder / "checkpoints").restore_replay(REPLAY, 3)


class _Wrapper:
    """One wrapper for all files: to make one takes longer than to load a file."""

    def __init__(self):
        self._env: Any = None

    @property
    def env(self) -> Any:
        if self._env is None:
            env = gymnasium.make_vec("synthetic_returns/CatchDelayed-v0", num_envs=4, runs=2)
            self._env = SyntheticReturnsVectorWrapper(
                env, method=METHOD, max_episode_steps=13, learn_every=3, seed=0
            )
            self._env.reset(seed=0)
            for _ in range(60):
                self._env.step(np.zeros(4, int))
        return self._env

    def make(self, folder: Path) -> None:
        assert len(self.env.credit.driver.waiting)  # to be learned from: a part of the file
        self.env.save(folder / "wrapper.npz")

    def read(self, folder: Path) -> None:
        self.env.load(folder / "wrapper.npz")


_WRAPPER = _Wrapper()


def _episodes(count: int = 6) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    return [
        {
            "observations": rng.normal(size=(steps + 1, 3)).round(3).tolist(),
            "actions": rng.integers(0, 3, steps).tolist(),
            "rewards": [0.0] * (steps - 1) + [float(rng.integers(2))],
        }
        for steps in rng.integers(2, 6, count)
    ]


def _fit_credit(folder: Path) -> None:
    credit = Credit(METHOD, updates=2)
    credit.fit([{name: np.array(x) for name, x in one.items()} for one in _episodes()])
    credit.save(folder / "credit.npz")


def _write_npz(folder: Path) -> None:
    episodes = _episodes()
    columns = {
        name: np.concatenate([np.array(one[name]) for one in episodes]) for name in episodes[0]
    }
    lengths = np.array([len(one["rewards"]) for one in episodes])
    np.savez(folder / "episodes.npz", allow_pickle=False, lengths=lengths, **columns)


def _write_jsonl(folder: Path) -> None:
    (folder / "episodes.jsonl").write_text("\n".join(map(json.dumps, _episodes())))


def _write_parquet(folder: Path) -> None:
    import pyarrow  # pyright: ignore[reportMissingImports]
    import pyarrow.parquet as parquet  # pyright: ignore[reportMissingImports]

    parquet.write_table(pyarrow.Table.from_pylist(_episodes()), folder / "episodes.parquet")


def _read_log(name: str) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        (log,) = find_logs(folder / name)
        found = read_format(log.read(), standardised=True)
        for number, episode in enumerate(log.read()):
            found.convert(episode, f"episode {number} of {log.path}")

    return read


def _write_table(folder: Path) -> None:
    (folder / "table.csv").write_text('name,steps,value\na,1,0.5\nb,2,\n"c, d",3,nan\n')


def _write_space(folder: Path) -> None:
    text = 'reward.alpha = "log:0.01:1"\n[optimizer]\nlearning_rate = "log:1e-5:4e-4"\n'
    (folder / "space.toml").write_text(text)


def _read_space(folder: Path) -> None:
    from synthetic_returns.experiments.sweeps.ranges import parse_space, read_space
    from synthetic_returns.presets import preset

    texts = read_space(folder / "space.toml")
    try:
        parse_space(texts, preset("chain"))
    except ValueError as error:
        if not _is_message(error):  # it names the setting, as it would on the command line
            raise


def _write_sweep(folder: Path) -> None:
    from synthetic_returns.experiments.sweeps.ranges import Range
    from synthetic_returns.experiments.sweeps.study import Settings, ask, open_study

    settings = Settings("chain", "fast", (), {"reward.alpha": "log:0.1:1"}, "return", 100, 0, True)
    study = open_study(settings, folder / "sweep", None)
    for value in (0.5, 0.7):
        trial = ask(study, {"reward.alpha": Range(0.1, 1.0)}, folder / "sweep")
        trial.report(value, 3)
        study.tell(trial, value)


def _read_sweep(folder: Path) -> None:
    from synthetic_returns.experiments.sweeps.outcome import read_outcomes
    from synthetic_returns.experiments.sweeps.study import read_settings

    study, settings = read_settings(folder / "sweep", None)
    for outcome in read_outcomes(study, settings):
        outcome.row()


READERS = {
    "config": Reader(_fake_run, _read_run, "run/config.json"),
    "metrics": Reader(_fake_run, _read_run, "run/metrics.csv", 2),
    "summary": Reader(_fake_run, _read_run, "run/summary.json", 2),
    "traces": Reader(_fake_run, _read_traces, "run/traces/*.npz"),
    "checkpoint": Reader(_save_checkpoint, _restore, "checkpoints/3/**/*", 10),
    "replay": Reader(_save_checkpoint, _restore_replay, "checkpoints/3/*.*"),
    "wrapper": Reader(_WRAPPER.make, _WRAPPER.read, "wrapper.npz", 4),
    "credit": Reader(_fit_credit, lambda folder: Credit.load(folder / "credit.npz"), "*.npz", 40),
    "npz": Reader(_write_npz, _read_log("episodes.npz"), "episodes.npz"),
    "jsonl": Reader(_write_jsonl, _read_log("episodes.jsonl"), "episodes.jsonl"),
    "table": Reader(_write_table, lambda folder: read_csv(folder / "table.csv"), "table.csv"),
    "space": Reader(_write_space, _read_space, "space.toml"),
}
if importlib.util.find_spec("pyarrow"):
    READERS["parquet"] = Reader(
        _write_parquet, _read_log("episodes.parquet"), "episodes.parquet", 2
    )
if importlib.util.find_spec("optuna"):
    READERS["sweep"] = Reader(_write_sweep, _read_sweep, "sweep/journal.log", 2)
