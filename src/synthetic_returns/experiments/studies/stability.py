"""Stability: whether what was learned lasts through two million more steps."""

import dataclasses
from pathlib import Path

from synthetic_returns.experiments.experiment import EPISODIC, Bar
from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import new_figure, save
from synthetic_returns.experiments.studies.catch import CATCH_DELAYED_20
from synthetic_returns.experiments.studies.key_to_door import KEY_TO_DOOR
from synthetic_returns.experiments.study import Results, Study

__all__ = ["EXPERIMENTS", "STUDY"]

LONGER = 2_000_000
KEPT = 0.95

EXPERIMENTS = tuple(
    dataclasses.replace(
        experiment,
        name=f"stability-{experiment.name}",
        steps=experiment.steps + LONGER,
        arms=(EPISODIC,),
        bars=(Bar("episodic", "lowest_after_solving", at_least=KEPT),),
        quick_steps=None,
    )
    for experiment in (CATCH_DELAYED_20, KEY_TO_DOOR)
)


def draw(results: Results, out: Path) -> list[Path]:
    """Learning curves with the line that they must not fall below again."""
    figure = new_figure(2.6)
    for ax, experiment in zip(figure.subplots(1, 2), EXPERIMENTS, strict=True):
        draw_curves(
            ax, results[experiment.name], "success", label="success", title=experiment.title,
            solved=KEPT, top=1.0,
        )  # fmt: skip
    return [save(figure, out / "stability.png")]


STUDY = Study("stability", "two million steps more than it takes", EXPERIMENTS, draw)
