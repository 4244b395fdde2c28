"""A study: the experiments behind one or two figures, and how to draw them."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from synthetic_returns.experiments.experiment import Experiment
from synthetic_returns.experiments.outcome import Outcomes
from synthetic_returns.utils.suggestions import unknown

__all__ = ["Results", "Study", "chosen", "with_arms"]

Results = Mapping[str, Outcomes]  # by the name of the experiment


@dataclasses.dataclass(frozen=True)
class Study:
    """Some experiments and their figures.

    Attributes:
      name: on the command line.
      description: one line.
      experiments: what is run.
      draw: makes the figures of whatever results there are in a folder; returns their paths.
      also: experiments of other studies that are drawn too if they have been run.
      curves_only: whether its figures need learning curves alone, so that those of ``also`` can be
        drawn from recorded results where the runs themselves are gone.
    """

    name: str
    description: str
    experiments: tuple[Experiment, ...]
    draw: Callable[[Results, Path], list[Path]]
    also: tuple[Experiment, ...] = ()
    curves_only: bool = False

    def quick(self) -> "Study":
        """The smaller version."""
        small = tuple(quick for e in self.experiments if (quick := e.quick()))
        return dataclasses.replace(self, experiments=small)

    def with_seeds(self, seeds: int) -> "Study":
        """The same with another number of seeds."""
        changed = tuple(dataclasses.replace(e, seeds=seeds) for e in self.experiments)
        return dataclasses.replace(self, experiments=changed)


def with_arms(studies: Sequence[Study], names: Sequence[str]) -> list[Study]:
    """The studies with these arms alone; the others are drawn from what was recorded of them."""
    known = list(dict.fromkeys(a.name for s in studies for e in s.experiments for a in e.arms))
    for name in names:
        if name not in known:
            raise ValueError(unknown("arm", name, known))
    parts = []
    for study in studies:
        if not study.curves_only:
            raise ValueError(
                f"the figures of {study.name!r} need the runs of all arms; leave out --arms."
            )
        run = tuple(
            dataclasses.replace(e, arms=arms)
            for e in study.experiments
            if (arms := tuple(arm for arm in e.arms if arm.name in names))
        )
        parts.append(
            dataclasses.replace(study, experiments=run, also=(*study.also, *study.experiments))
        )
    return parts


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
