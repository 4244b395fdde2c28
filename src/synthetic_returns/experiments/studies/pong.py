"""Pong: synthetic returns leave a game with quick rewards as it was."""

import dataclasses
from pathlib import Path

import numpy as np

from synthetic_returns.experiments.experiment import FULL, Experiment
from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import new_figure, save
from synthetic_returns.experiments.outcome import Outcome
from synthetic_returns.experiments.study import Results, Study
from synthetic_returns.utils.tables import write_csv

__all__ = ["LEVELS", "PONG", "STUDY", "steps_to"]

LEVELS = (-10.0, 0.0, 15.0)  # scores on the way from -21 to 21

PONG = Experiment(
    name="pong",
    title="Pong",
    task="pong",
    arms=tuple(dataclasses.replace(arm, preset="fast") for arm in FULL),
    steps=1_200_000,  # of 4 frames: 4.8 million
    quick_steps=500_000,
    solved=0.95,
    credited="point",
    traces=3,  # each of the best of eight episodes, and those are long
    seeds=2,
)


def draw(results: Results, out: Path) -> list[Path]:
    """Score over steps; beside it, in ``pong/levels.csv``, the steps to certain scores."""
    outcomes = results[PONG.name]
    write_csv(
        out / PONG.name / "levels.csv",
        [
            {"arm": run.arm.name, "seed": run.seed}
            | {f"steps_to_{level:g}": steps_to(run, level) for level in LEVELS}
            for runs in outcomes.values()
            for run in runs
        ],
    )
    figure = new_figure(3.0)
    ax = figure.subplots()
    draw_curves(ax, outcomes, "episode_return", label="score", title="Pong")
    ax.legend(loc="best")
    return [save(figure, out / "pong.png")]


def steps_to(run: Outcome, level: float) -> float | None:
    """The first step at which the smoothed score reaches a level; None if it never does."""
    reached = np.flatnonzero(run.curve("episode_return") >= level)
    return float(run.steps[reached[0]]) if len(reached) else None


STUDY = Study("pong", "Atari: quick rewards, with and without synthetic returns", (PONG,), draw)
