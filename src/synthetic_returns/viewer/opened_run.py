"""A run that is there to be looked at: opened and understood, or refused with what to do."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from synthetic_returns.agents.agent import Agent
from synthetic_returns.config import Config
from synthetic_returns.credit.explainer import Explainer
from synthetic_returns.training.checkpoints import Checkpoints
from synthetic_returns.training.loading import load_run
from synthetic_returns.training.run_config import read_config
from synthetic_returns.training.runs import Run
from synthetic_returns.utils.files import RunError

__all__ = ["OpenedRun", "find_runs"]


@dataclasses.dataclass(frozen=True)
class OpenedRun:
    """A run directory and its configuration.

    Attributes:
      run: the directory, open for reading.
      config: its settings.
    """

    run: Run
    config: Config

    @classmethod
    def open(cls, path: Path) -> "OpenedRun":
        """Opens a run; of an older version too, if this one still understands its settings."""
        run = Run.open(path)
        return cls(run, read_config(run))

    @property
    def path(self) -> Path:
        """The directory."""
        return self.run.path

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is an agent to play with."""
        return bool(Checkpoints(self.path / "checkpoints").steps())

    def load(self) -> tuple[int, Agent, Explainer | None]:
        """The step of the newest checkpoint, the agent, and what explains its credit."""
        if not self.has_checkpoint:
            raise RunError(
                f"run {self.path} has no checkpoint yet, so there is no agent to look at: let it "
                f"go on with synthetic-returns train --resume {self.path}"
            )
        return load_run(self.path, self.config)


def find_runs(paths: Sequence[Path]) -> list[OpenedRun]:
    """Opens runs; a folder that holds runs stands for all of them."""
    found: dict[Path, OpenedRun] = {}
    for path in paths:
        folders = sorted(config.parent for config in path.glob("*/config.json"))
        is_folder_of_runs = bool(folders) and not (path / "config.json").exists()
        for run in folders if is_folder_of_runs else [path]:
            found.setdefault(run.resolve(), OpenedRun.open(run))
    return list(found.values())
