"""What was published about the task of a run."""

import functools

from synthetic_returns.config import Config
from synthetic_returns.envs.registry import make
from synthetic_returns.envs.spec import TaskSpec
from synthetic_returns.experiments.catalog import FIGURES
from synthetic_returns.experiments.experiment import Experiment
from synthetic_returns.experiments.table import published_results

__all__ = ["find_experiment", "published"]


def find_experiment(config: Config) -> Experiment | None:
    """The experiment of the paper with this task and these parameters of it."""
    for experiment, task in _experiments():
        if experiment.task == config.task_name and task == config.task:
            return experiment
    return None


def published(config: Config) -> str:
    """The paper's numbers for this task and arm; empty if there are none."""
    experiment = find_experiment(config)
    return published_results(experiment.name, config.credit.name) if experiment else ""


@functools.cache
def _experiments() -> list[tuple[Experiment, TaskSpec]]:
    experiments = [experiment for study in FIGURES for experiment in study.experiments]
    return [(experiment, _task(experiment)) for experiment in experiments]


def _task(experiment: Experiment) -> TaskSpec:
    """The task with the parameters that the flags of the experiment give it, whole numbers all."""
    pairs = zip(experiment.flags[::2], experiment.flags[1::2], strict=True)
    parameters = {
        name.removeprefix("--task.").replace("-", "_"): int(value)
        for name, value in pairs
        if name.startswith("--task.")
    }
    return make(experiment.task, **parameters)
