"""A study: the experiments behind one or two figures, and how to draw them."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from synthetic_returns.experiments.experiment import Experiment
from synthetic_returns.experiments.outcome import Outcomes

__all__ = ["Results", "Study"]

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
