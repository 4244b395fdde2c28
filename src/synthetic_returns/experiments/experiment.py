"""An experiment: named arms, each trained on the same seeds for the same number of steps."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from synthetic_returns.training.job import Job

__all__ = [
    "EPISODIC",
    "FULL",
    "NONE",
    "PAPER",
    "WITHOUT",
    "Arm",
    "Bar",
    "Experiment",
    "unique_jobs",
]

ROWS = 100  # of metrics in a run, whatever its budget


@dataclasses.dataclass(frozen=True)
class Arm:
    """One way of training.

    Attributes:
      name: in file names.
      label: in figures.
      colour: in figures.
      flags: of ``synthetic-returns train``, beside those of the experiment.
      preset: what the flags are set on.
    """

    name: str
    label: str
    colour: str
    flags: tuple[str, ...] = ()
    preset: str = "fast"

    def with_flags(self, *flags: str) -> "Arm":
        """The same arm with more flags."""
        return dataclasses.replace(self, flags=(*self.flags, *flags))


# Arms have the names of their credit methods. Orange with synthetic returns and blue without, as in
# the paper.
EPISODIC = Arm("episodic", "with SR", "#e8710a", preset="episodic")
PAPER = Arm("paper", "with SR", "#e8710a", preset="paper")
NONE = Arm("none", "without SR", "#1f77b4", ("--credit", "none"))
WITHOUT = dataclasses.replace(NONE, preset=EPISODIC.preset)
FULL = (EPISODIC, WITHOUT)


@dataclasses.dataclass(frozen=True)
class Bar:
    """What every seed of an arm has to show: a column of its row in ``summary.csv``."""

    arm: str
    column: str
    at_least: float = float("-inf")
    at_most: float = float("inf")

    def holds(self, value: float) -> bool:
        """Whether the value is good enough; NaN never is."""
        return self.at_least <= value <= self.at_most

    def __str__(self) -> str:
        if self.at_most == float("inf"):
            return f"{self.column} ≥ {self.at_least:g}"
        return f"{self.column} ≤ {self.at_most:g}"


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Arms x seeds of training on one task.

    Attributes:
      name: in file names and tables.
      title: in figures.
      task: name of the task.
      steps: environment steps of every run.
      solved: the share of success from which the task counts as solved.
      credited: the event that earns the later reward; where c should spike. Empty where that is
        not asked.
      flags: parameters of the task, as flags of ``synthetic-returns train``.
      arms: what is compared.
      seeds: how many, from 0.
      bars: what the results have to show.
      quick_steps: the budget of the quick version; None if it is left out there.
      traces: example episodes recorded in a run; by default enough to find some while the policy is
        still learning.
      note: what everybody has to know who reads about its credit.
      runs: name of the folder of runs; experiments that share runs share it.
    """

    name: str
    title: str
    task: str
    steps: int
    solved: float
    credited: str = ""
    flags: tuple[str, ...] = ()
    arms: tuple[Arm, ...] = FULL
    seeds: int = 4
    bars: tuple[Bar, ...] = ()
    quick_steps: int | None = None
    traces: int = 20
    note: str = ""
    runs: str = ""

    def quick(self) -> "Experiment | None":
        """A smaller version: two seeds and less training."""
        if self.quick_steps is None:
            return None
        return dataclasses.replace(self, steps=self.quick_steps, seeds=2)

    def run_path(self, root: Path, arm: Arm, seed: int) -> Path:
        """The run directory of one seed of one arm."""
        return root / (self.runs or self.name) / f"{arm.name}-seed{seed}"

    def jobs(self, root: Path) -> list[Job]:
        """Everything that has to be trained; the arms of a seed stand side by side."""
        return [self.job(root, arm, seed) for seed in range(self.seeds) for arm in self.arms]

    def arguments(self, arm: Arm, seed: int) -> tuple[str, ...]:
        """What ``synthetic-returns train`` is told for one seed of one arm."""
        budget = {
            "--steps": self.steps,
            "--reporting.log-every": max(1, self.steps // ROWS),
            "--reporting.traces": self.traces,
            "--seed": seed,
        }
        return (
            *(self.task, "--preset", arm.preset, *self.flags, *arm.flags),
            *(text for name, value in budget.items() for text in (name, str(value))),
        )

    def job(self, root: Path, arm: Arm, seed: int) -> Job:
        """The training of one seed of one arm."""
        return Job(
            name=f"{self.name} {arm.name} seed {seed}",
            arguments=self.arguments(arm, seed),
            out=self.run_path(root, arm, seed),
            steps=self.steps,
        )


def unique_jobs(experiments: Sequence[Experiment], root: Path) -> list[Job]:
    """The jobs of several experiments; a run that two of them share is trained once."""
    jobs = {job.out: job for experiment in experiments for job in experiment.jobs(root)}
    return list(jobs.values())
