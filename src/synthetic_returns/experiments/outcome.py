"""What one run of an experiment came to, read from its run directory."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from synthetic_returns.envs.registry import find_task
from synthetic_returns.envs.spec import EventMark
from synthetic_returns.experiments.experiment import Arm, Experiment
from synthetic_returns.experiments.solving import Solving, find_solving, smooth
from synthetic_returns.training.runs import Run
from synthetic_returns.training.traces import Player, Trace, read_traces
from synthetic_returns.utils.tables import read_csv

__all__ = ["Outcome", "Outcomes", "read_outcomes", "read_recorded", "spike_ratio"]

LEARNING = 0.5  # the success at which the example episode in the middle of learning is taken


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One finished run: one seed of one arm."""

    experiment: Experiment
    arm: Arm
    seed: int
    path: Path
    config: dict[str, Any]
    metrics: dict[str, np.ndarray]
    summary: dict[str, Any]

    @classmethod
    def read(cls, experiment: Experiment, arm: Arm, seed: int, root: Path) -> "Outcome":
        """Reads a run directory."""
        run = Run.open(experiment.run_path(root, arm, seed))
        return cls(
            experiment, arm, seed, run.path, run.config, run.read_metrics(), run.summary()
        )  # fmt: skip

    @property
    def event_marks(self) -> Mapping[str, EventMark]:
        """How the events of the task are marked in figures."""
        return find_task(self.experiment.task).environment.event_marks

    @property
    def steps(self) -> np.ndarray:
        """The environment steps of every row of metrics."""
        return self.metrics["env_steps"]

    def curve(self, metric: str) -> np.ndarray:
        """A smoothed column of the metrics."""
        return smooth(self.metrics[metric])

    @property
    def solving(self) -> Solving | None:
        """When the task was solved, if it was."""
        return find_solving(self.metrics["success"], self.experiment.solved)

    def example_traces(self, player: Player = "agent") -> list[Trace]:
        """Three episodes, from early, in the middle of and late in learning.

        Early is the first one that was recorded, the middle is where half of the success has been
        reached, and late is the end.

        Args:
          player: who plays; as it explores, an agent that has learned its task still fails.
        """
        traces = read_traces(self.path, player)
        if len(traces) <= 3:
            return traces
        success = self.curve("success")
        climbed = np.flatnonzero(success >= LEARNING * np.nanmax(success))
        middle = _nearest(traces, float(self.steps[climbed[0]])) if len(climbed) else 0
        middle = min(max(1, middle), len(traces) - 2)
        return [traces[index] for index in (0, middle, len(traces) - 1)]

    def scripted_traces(self) -> dict[str, Trace]:
        """The credit of the decisive states: while the policy was learning, and at the end."""
        traces = read_traces(self.path, "scripted")
        if not traces:
            return {}
        solving = self.solving
        solved_at = self.steps[solving.row] if solving else np.inf
        learning = [trace for trace in traces if trace.step < solved_at] or traces[:1]
        return {"learning": learning[-1], "end": traces[-1]}

    def row(self) -> dict[str, Any]:
        """The row of this run in ``summary.csv``."""
        solving, result = self.solving, dict(self.summary["eval"])
        row = {
            "experiment": self.experiment.name,
            "arm": self.arm.name,
            "seed": self.seed,
            "env_steps": self.summary["env_steps"],
            "wall_s": self.summary["wall_s"],
            "steps_to_solve": self.steps[solving.row] if solving else None,
            "wall_s_to_solve": self.metrics["wall_s"][solving.row] if solving else None,
            "lowest_after_solving": solving.lowest if solving else None,
        }
        phases = self.scripted_traces() if self.experiment.credited else {}
        for phase, trace in phases.items():
            row[f"credit_ratio_{phase}"] = spike_ratio(trace, self.experiment.credited)
        return row | {f"eval_{name}": value for name, value in result.items()}


Outcomes = dict[str, list[Outcome]]  # by arm


def read_outcomes(experiment: Experiment, root: Path) -> Outcomes:
    """All finished runs of an experiment; arms without any are left out."""
    outcomes: Outcomes = {}
    for arm in experiment.arms:
        for seed in range(experiment.seeds):
            if (experiment.run_path(root, arm, seed) / "summary.json").exists():
                outcome = Outcome.read(experiment, arm, seed, root)
                outcomes.setdefault(arm.name, []).append(outcome)
    return outcomes


def read_recorded(experiment: Experiment, folder: Path) -> Outcomes:
    """The curves of an experiment as they were recorded; of its runs, nothing else is known.

    Args:
      experiment: what was run.
      folder: where ``write_curve`` wrote them.
    """
    outcomes: Outcomes = {}
    for arm in experiment.arms:
        for seed in range(experiment.seeds):
            path = folder / f"{arm.name}-seed{seed}.csv"
            if rows := read_csv(path):
                metrics = {name: np.array([row[name] for row in rows]) for name in rows[0]}
                outcome = Outcome(experiment, arm, seed, path, {}, metrics, {})
                outcomes.setdefault(arm.name, []).append(outcome)
    return outcomes


def spike_ratio(trace: Trace, event: str) -> float:
    """How far the credit stands out where an event happens.

    It is the mean of the credit there over the largest elsewhere, whatever its sign.

    The start is in every episode, and the last state with a successor is before no reward but its
    own: the credit of these says nothing, and they do not count. NaN without credit.
    """
    credit, inner = trace.explanation.per_state(), slice(1, len(trace.reward) - 2)
    happens = trace.events[event][inner] > 0
    if credit is None or not happens.any() or happens.all():
        return float("nan")
    credit = credit[inner]
    return float(credit[happens].mean() / max(np.abs(credit[~happens]).max(), 1e-12))


def _nearest(traces: list[Trace], step: float) -> int:
    return int(np.argmin([abs(trace.step - step) for trace in traces]))
