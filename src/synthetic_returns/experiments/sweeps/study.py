"""A sweep's record: an Optuna study with the settings that every trial shares."""

import contextlib
import dataclasses
import json
import logging
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from synthetic_returns.experiments.sweeps.ranges import Choices, Range, Space
from synthetic_returns.utils.files import RunError
from synthetic_returns.utils.reading import read_text
from synthetic_returns.utils.settings import from_plain

__all__ = [
    "REPORTS",
    "Settings",
    "TrialState",
    "ask",
    "open_study",
    "quiet",
    "read_settings",
    "running_trials",
]

JOURNAL = "journal.log"
REPORTS = 40  # of a trial's progress, evenly over its steps
STARTUP = 5  # finished trials before any is pruned
WARMUP = 0.25  # of a trial's steps before it can be pruned

_SETTINGS = "settings"
_FOLDER = "folder"


@dataclasses.dataclass(frozen=True)
class Settings:
    """What every trial of a sweep has in common.

    Attributes:
      task: name of the task.
      preset: name of the preset.
      flags: of ``synthetic-returns train``, set in every trial.
      space: what the other settings are drawn from, by name, as text.
      metric: what is maximised: ``return``, or an event of the task.
      steps: environment steps of a whole trial.
      seed: of the draws, and of the first trial; trial n is trained with seed + n.
      prune: whether unpromising trials are stopped early.
    """

    task: str
    preset: str
    flags: tuple[str, ...]
    space: dict[str, str]
    metric: str
    steps: int
    seed: int
    prune: bool

    def to_json(self) -> str:
        """For the study."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Settings":
        """From the study."""
        return from_plain(cls, json.loads(text))

    def difference(self, now: "Settings") -> str:
        """Names the settings in which two sweeps differ."""
        a, b = dataclasses.asdict(self), dataclasses.asdict(now)
        return ", ".join(f"{k}: {a[k]!r} then, {b[k]!r} now" for k in a if a[k] != b[k])


class _NumberedSampler(RandomSampler):
    """Random search in which the number of a trial says what is drawn for it.

    So a sweep that was interrupted, or is spread over machines, has the trials of one that was not.
    """

    def __init__(self, seed: int):
        super().__init__()
        self._sweep_seed = seed

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        text = f"{self._sweep_seed} {trial.number} {param_name}"
        sampler = RandomSampler(seed=zlib.crc32(text.encode()))
        return sampler.sample_independent(study, trial, param_name, param_distribution)


def open_study(settings: Settings, folder: Path, storage: str | None) -> Study:
    """Starts the record of a sweep, or goes on with the one that has the folder's name.

    Raises:
      RunError: it was made with other settings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pruner = optuna.pruners.NopPruner()
    if settings.prune:
        warmup = int(WARMUP * REPORTS)
        pruner = optuna.pruners.MedianPruner(n_startup_trials=STARTUP, n_warmup_steps=warmup)
    with quiet(), damage(folder, storage):
        study = optuna.create_study(
            storage=_storage(folder, storage),
            sampler=_NumberedSampler(settings.seed),
            pruner=pruner,
            study_name=folder.absolute().name,
            direction="maximize",
            load_if_exists=True,
        )
        if _SETTINGS not in study.user_attrs:
            study.set_user_attr(_SETTINGS, settings.to_json())
        before = Settings.from_json(study.user_attrs[_SETTINGS])
    if before != settings:
        raise RunError(
            f"the sweep {folder} was started with other settings "
            f"({before.difference(settings)}); go on with those, or choose another --out"
        )
    return study


def read_settings(folder: Path, storage: str | None) -> tuple[Study, Settings]:
    """The record of an existing sweep, to look at."""
    if storage is None and not (folder / JOURNAL).exists():
        raise FileNotFoundError(
            f"there is no sweep {folder}: it has no {JOURNAL}; check the path, or name its "
            "--storage"
        )
    name = folder.absolute().name
    with quiet(), damage(folder, storage):
        opened = _storage(folder, storage)
        if name not in optuna.get_all_study_names(opened):
            raise RunError(
                f"there is no sweep {name!r} in {storage or folder / JOURNAL}: check the name of "
                "the folder"
            )
        study = optuna.load_study(study_name=name, storage=opened)
        study.get_trials(deepcopy=False)  # all can be read
        return study, Settings.from_json(study.user_attrs[_SETTINGS])


@contextlib.contextmanager
def damage(folder: Path, storage: str | None) -> Iterator[None]:
    """Names a record that cannot be read; Optuna fails on it in many ways."""
    try:
        yield
    except RunError:
        raise
    except Exception as error:
        raise RunError(
            f"{storage or folder / JOURNAL} is damaged, or not the record of a sweep ({error!r}): "
            "restore it, or start another sweep"
        ) from error


def ask(study: Study, space: Space, folder: Path) -> Trial:
    """The next trial, which is trained in this folder."""
    with quiet():
        trial = study.ask({name: _distribution(drawn) for name, drawn in space.items()})
    trial.set_user_attr(_FOLDER, _signature(folder))
    return trial


def running_trials(study: Study, folder: Path, storage: str | None) -> list[Trial]:
    """The trials of this folder that have a beginning and no end."""
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    # The journal of a folder knows no other folders. Elsewhere, other machines may be at work.
    ours = [
        trial
        for trial in running
        if storage is None or trial.user_attrs.get(_FOLDER) == _signature(folder)
    ]
    return [Trial(study, trial._trial_id) for trial in ours]


def _signature(folder: Path) -> str:
    return f"{socket.gethostname()}:{folder.absolute()}"


def _distribution(drawn: Range | Choices) -> BaseDistribution:
    if isinstance(drawn, Choices):
        return CategoricalDistribution(drawn.values)
    if drawn.whole:
        return IntDistribution(int(drawn.low), int(drawn.high), log=drawn.log)
    return FloatDistribution(drawn.low, drawn.high, log=drawn.log)


def _storage(folder: Path, url: str | None) -> BaseStorage | str:
    if url is None:
        return _journal(folder / JOURNAL)
    if url.startswith(("redis://", "rediss://")):
        from optuna.storages.journal import JournalRedisBackend

        return JournalStorage(JournalRedisBackend(url))
    return url


def _journal(path: Path) -> JournalStorage:
    """A journal file, without the half of a line that a power failure may have left at its end."""
    lock = JournalFileSymlinkLock(str(path))
    if path.exists():
        lock.acquire()
        try:
            content = read_text(path, "restore it, or start another sweep").encode()
            if not content.endswith(b"\n"):
                with path.open("r+b") as file:
                    file.truncate(content.rfind(b"\n") + 1)
        finally:
            lock.release()
    return JournalStorage(JournalFileBackend(str(path), lock))


@contextlib.contextmanager
def quiet():
    """Silences Optuna's log of studies and trials; the sweep prints its own."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(verbosity)
