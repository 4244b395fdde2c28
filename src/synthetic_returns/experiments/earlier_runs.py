"""Runs of an earlier command: used again if they are what is asked for now, and else refused."""

from collections.abc import Callable, Sequence
from pathlib import Path

from synthetic_returns.config import Config
from synthetic_returns.experiments.experiment import Experiment
from synthetic_returns.training.run_config import read_config
from synthetic_returns.training.runs import Run, RunError
from synthetic_returns.training.trainer import difference

__all__ = ["Configure", "check_earlier_runs"]

Configure = Callable[[Sequence[str]], Config]  # what arguments of ``train`` mean


def check_earlier_runs(
    experiments: Sequence[Experiment], runs: Path, configure: Configure, *, elsewhere: str
) -> None:
    """Refuses runs that were made with other settings, so that one table shows one method.

    Args:
      experiments: what is to be run.
      runs: where the run directories are.
      configure: reads the arguments of a run.
      elsewhere: the flag that names another place for them, for the message.
    """
    for experiment in experiments:
        for arm in experiment.arms:
            paths = {s: experiment.run_path(runs, arm, s) for s in range(experiment.seeds)}
            earlier = {s: path for s, path in paths.items() if (path / "config.json").exists()}
            if not earlier:
                continue
            now = configure(experiment.arguments(arm, 0))  # seeds differ in nothing else
            for seed, path in earlier.items():
                before = read_config(Run.open(path))
                if before != now.changed(seed=seed):
                    raise RunError(
                        f"{path} was made with other settings "
                        f"({difference(before, now.changed(seed=seed))}); delete it to train it "
                        f"again, or keep it and choose another {elsewhere}"
                    )
