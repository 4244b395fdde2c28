"""A study: the experiments behind one or two figures, and how to draw them."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from synthetic_returns.experiments.experiment import Experiment
from synthetic_returns.experiments.outcome import Outcomes
from synthetic_returns.utils.suggestions import unknown

__all__ = ["Results", "Study", "chosen"]

Results = Mapping[str, Outcomes]  # by the name of the experiment


@dataclasses.dataclass(frozen=True)
class Study:
    """Some experiments and their figures.

    Attributes:
      name: on the command line.
      description: one line.
      experiments: what is run.
      draw: makes the figures of whatever results there are in a folder; gives their paths.
      also: experiments of other studies that are drawn too if they have been run.
    """

    name: str
    description: str
    experiments: tuple[Experiment, ...]
    draw: Callable[[Results, Path], list[Path]]
    also: tuple[Experiment, ...] = ()

    def quick(self) -> "Study":
        """The smaller version."""
        small = tuple(quick for e in self.experiments if (quick := e.quick()))
        return dataclasses.replace(self, experiments=small)

    def with_seeds(self, seeds: int) -> "Study":
        """The same with another number of seeds."""
        changed = tuple(dataclasses.replace(e, seeds=seeds) for e in self.experiments)
        return dataclasses.replace(self, experiments=changed)


def chosen(studies: Sequence[Study], names: Sequence[str]) -> list[Study]:
    """The studies with these of their experiments alone; the others are drawn if they were run."""
    known = [e.name for study in studies for e in study.experiments]
    for name in names:
        if name not in known:
            raise ValueError(unknown("experiment", name, known))
    parts = []
    for study in studies:
        run = tuple(e for e in study.experiments if e.name in names)
        others = tuple(e for e in study.experiments if e.name not in names)
        parts.append(dataclasses.replace(study, experiments=run, also=(*study.also, *others)))
    return [study for study in parts if study.experiments]
