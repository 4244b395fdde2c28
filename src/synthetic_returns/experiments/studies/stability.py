"""Stability: whether what was learned lasts through two million more steps.

First with the default method, then with the episodic learner and its presets.
"""

import dataclasses
from pathlib import Path

from synthetic_returns.experiments.experiment import EPISODIC, Arm, Bar, Experiment
from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import new_figure, save
from synthetic_returns.experiments.method_arms import ADVANCE
from synthetic_returns.experiments.studies import catch, key_to_door, untuned
from synthetic_returns.experiments.study import Results, Study

__all__ = ["EXPERIMENTS", "STUDY"]

LONGER = 2_000_000
KEPT = 0.95


def _longer(experiment: Experiment, arm: Arm) -> Experiment:
    return dataclasses.replace(
        experiment,
        name=f"stability-{experiment.name}",
        title=f"{experiment.title}: {arm.name}",
        steps=experiment.steps + LONGER,
        arms=(arm,),
        bars=(Bar(arm.name, "lowest_after_solving", at_least=KEPT),),
        quick_steps=None,
    )


EXPERIMENTS = (
    _longer(untuned.CATCH_20, ADVANCE),
    _longer(untuned.KEY_TO_DOOR, ADVANCE),
    _longer(catch.CATCH_DELAYED_20, EPISODIC),
    _longer(key_to_door.KEY_TO_DOOR, EPISODIC),
)


def draw(results: Results, out: Path) -> list[Path]:
    """Learning curves with the line that they must not fall below again."""
    figure = new_figure(4.8)
    for ax, experiment in zip(figure.subplots(2, 2).flat, EXPERIMENTS, strict=True):
        if experiment.name not in results:
            ax.set_visible(False)
            continue
        draw_curves(
            ax, results[experiment.name], "success", label="success", title=experiment.title,
            solved=KEPT, top=1.0,
        )  # fmt: skip
    return [save(figure, out / "stability.png")]


STUDY = Study(
    "stability", "two million steps more than it takes", EXPERIMENTS, draw, curves_only=True
)
