"""What a comparison trains: every method on every task, but for those that cannot be used there."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from synthetic_returns.engines.credit import check_credit
from synthetic_returns.experiments.earlier_runs import Configure
from synthetic_returns.experiments.experiment import Arm, Experiment
from synthetic_returns.experiments.method_arms import method_arm
from synthetic_returns.training.job import Job
from synthetic_returns.utils.suggestions import chosen_names

__all__ = ["Comparison", "Missing", "plan", "with_methods"]


@dataclasses.dataclass(frozen=True)
class Missing:
    """A method that has no result on a task.

    Attributes:
      task: name of the experiment.
      method: name of the method.
      reason: why.
    """

    task: str
    method: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What is trained, and what cannot be.

    Attributes:
      experiments: one for each task; its arms are the methods that can be used there.
      missing: the others.
    """

    experiments: tuple[Experiment, ...]
    missing: tuple[Missing, ...] = ()

    def only(self, tasks: Sequence[str], methods: Sequence[str]) -> "Comparison":
        """A part of it, to be trained alone; where no names are given, all.

        Raises:
          ValueError: there is no such task or method.
        """
        of_task = chosen_names("task", tasks, [e.name for e in self.experiments])
        every = dict.fromkeys(arm.name for e in self.experiments for arm in e.arms)
        of_method = chosen_names("method", methods, list(every))
        parts = [
            dataclasses.replace(e, arms=tuple(arm for arm in e.arms if arm.name in of_method))
            for e in self.experiments
            if e.name in of_task
        ]
        return Comparison(tuple(part for part in parts if part.arms))

    def jobs(self, root: Path) -> dict[Job, tuple[Experiment, Arm]]:
        """All training; one seed of everything before the next, so that a part of it is of use."""
        seeds = max((e.seeds for e in self.experiments), default=0)
        return {
            experiment.job(root, arm, seed): (experiment, arm)
            for seed in range(seeds)
            for experiment in self.experiments
            for arm in experiment.arms
        }


def with_methods(
    experiment: Experiment, methods: Sequence[str], *, preset: str, tuned: str
) -> Experiment:
    """The experiment with one arm for each method.

    Args:
      experiment: on one task.
      methods: their names.
      preset: whose agent all of them get.
      tuned: the method that the preset was made for.
    """
    arms = tuple(method_arm(name, preset=preset, tuned=name == tuned) for name in methods)
    return dataclasses.replace(experiment, arms=arms)


def plan(experiments: Sequence[Experiment], configure: Configure) -> Comparison:
    """Sorts out what cannot be trained, before anything is.

    Args:
      experiments: with the arms of all methods.
      configure: reads the arguments of a run.

    Raises:
      ValueError: nothing can be trained on a task.
    """
    possible: list[Experiment] = []
    missing: list[Missing] = []
    for experiment in experiments:
        arms: list[Arm] = []
        refused: list[Missing] = []
        for arm in experiment.arms:
            try:
                check_credit(configure(experiment.arguments(arm, 0)))
                arms.append(arm)
            except ValueError as error:
                refused.append(Missing(experiment.name, arm.name, str(error)))
        if not arms:
            first = refused[0]
            raise ValueError(f"none of the methods can be used on {first.task}: {first.reason}")
        possible.append(dataclasses.replace(experiment, arms=tuple(arms)))
        missing += refused
    return Comparison(tuple(possible), tuple(missing))
