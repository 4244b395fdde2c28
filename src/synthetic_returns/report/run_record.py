"""What a report knows about one run."""

import dataclasses
import itertools
from typing import Any

import numpy as np

from synthetic_returns.config import Config
from synthetic_returns.experiments.solving import find_solving, smooth
from synthetic_returns.training.runs import Run
from synthetic_returns.training.traces import drift, read_traces
from synthetic_returns.utils.files import RunError
from synthetic_returns.viewer.opened_run import OpenedRun

__all__ = ["RunRecord"]


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """A run, its metrics, and its result if it has finished.

    Attributes:
      opened: the run.
      metrics: by column.
      summary: the final result; None while there is none.
    """

    opened: OpenedRun
    metrics: dict[str, np.ndarray]
    summary: dict[str, Any] | None

    @classmethod
    def read(cls, opened: OpenedRun) -> "RunRecord":
        """Reads a run; refuses one that has not written anything yet."""
        metrics = opened.run.read_metrics()
        if not len(metrics["env_steps"]):
            raise RunError(
                f"run {opened.path} has no row of metrics yet: let it go on with "
                f"synthetic-returns train --resume {opened.path}, or leave it out"
            )
        try:
            summary = opened.run.summary()
        except RunError:
            summary = None
            if (opened.path / "summary.json").exists():
                raise  # it is there, and damaged
        return cls(opened, metrics, summary)

    @property
    def run(self) -> Run:
        """The directory."""
        return self.opened.run

    @property
    def config(self) -> Config:
        """Its settings."""
        return self.opened.config

    def curve(self, name: str, *, smoothed: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values of a column; empty if the run does not have it."""
        if name not in self.metrics:
            return np.zeros(0), np.zeros(0)
        values = self.metrics[name]
        return self.metrics["env_steps"], smooth(values) if smoothed else values

    def solved_at(self, threshold: float) -> tuple[int, float] | None:
        """Steps and seconds of training until the task was solved for good."""
        if "success" not in self.metrics:
            return None
        solving = find_solving(self.metrics["success"], threshold)
        if solving is None:
            return None
        wall_s = self.metrics.get("wall_s", np.full(solving.row + 1, np.nan))
        return int(self.metrics["env_steps"][solving.row]), float(wall_s[solving.row])

    def drift(self) -> tuple[np.ndarray, np.ndarray]:
        """How much the credit changes from trace to trace on the same scripted episode."""
        traces = read_traces(self.opened.path, "scripted")
        pairs = list(itertools.pairwise(traces))
        steps = np.array([after.step for _, after in pairs], np.float64)
        return steps, np.array([drift(before, after) for before, after in pairs])
