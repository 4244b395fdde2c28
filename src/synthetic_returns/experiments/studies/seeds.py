"""Seeds: every one of twenty, none left out."""

import dataclasses
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import new_figure, save, steps_axis
from synthetic_returns.experiments.method_arms import ADVANCE
from synthetic_returns.experiments.outcome import Outcome
from synthetic_returns.experiments.studies.untuned import CATCH_20, KEY_TO_DOOR
from synthetic_returns.experiments.study import Results, Study

__all__ = ["EXPERIMENTS", "STUDY"]

EXPERIMENTS = tuple(
    dataclasses.replace(
        experiment,
        name=experiment.name.replace("untuned", "seeds"),
        arms=(ADVANCE,),
        seeds=20,
        quick_steps=None,
        runs=experiment.name,
    )
    for experiment in (CATCH_20, KEY_TO_DOOR)
)


def draw(results: Results, out: Path) -> list[Path]:
    """All learning curves, and how many seeds have solved the task by when."""
    figure = new_figure(4.8)
    for column, experiment in zip(figure.subplots(2, 2).T, EXPERIMENTS, strict=True):
        outcomes = results[experiment.name]
        curves, solved = column
        draw_curves(
            curves, outcomes, "success", label="success", title=experiment.title,
            solved=experiment.solved, top=1.0,
        )  # fmt: skip
        _draw_solved(solved, outcomes["advance"])
        solved.sharex(curves)
    return [save(figure, out / "seeds.png")]


def _draw_solved(ax: Axes, runs: list[Outcome]) -> None:
    steps = sorted(run.steps[run.solving.row] for run in runs if run.solving)
    end = max(run.steps[-1] for run in runs)
    ax.step(
        [0, *steps, end], [*range(len(steps) + 1), len(steps)], where="post", color=ADVANCE.colour
    )
    ax.set_title(f"{len(steps)} of {len(runs)} seeds solve it")
    ax.set_ylabel("seeds that have solved it")
    ax.set_yticks(np.linspace(0, len(runs), 5).round().astype(int))
    steps_axis(ax)


STUDY = Study(
    "seeds",
    "twenty seeds of delayed Catch and of Key-to-Door",
    EXPERIMENTS,
    draw,
    curves_only=True,
)
