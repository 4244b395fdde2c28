"""The paper's agent, faithful: Chain and standard Catch with its own settings."""

import dataclasses
from pathlib import Path

from synthetic_returns.reproduction.catch import CATCH_20
from synthetic_returns.reproduction.chain import CHAIN
from synthetic_returns.reproduction.curves import draw_curves
from synthetic_returns.reproduction.experiment import NO_SR, SR, Bar, Experiment
from synthetic_returns.reproduction.study import Results, Study
from synthetic_returns.reproduction.style import new_figure, save

__all__ = ["EXPERIMENTS", "STUDY"]

ARMS = tuple(dataclasses.replace(arm, preset="paper") for arm in (SR, NO_SR))


def _faithful(experiment: Experiment, *bars: Bar) -> Experiment:
    return dataclasses.replace(
        experiment,
        name=f"impala-{experiment.name}",
        title=f"{experiment.title}, the paper's settings",
        steps=1_000_000,
        arms=ARMS,
        bars=bars,
        quick_steps=None,
    )


EXPERIMENTS = (
    _faithful(
        CHAIN,
        Bar("sr", "eval_success", at_least=0.98),
        Bar("no-sr", "eval_success", at_most=0.05),
    ),
    _faithful(CATCH_20, *(Bar(arm.name, "eval_return_mean", at_least=19.5) for arm in ARMS)),
)


def draw(results: Results, out: Path) -> list[Path]:
    """Learning curves of both tasks."""
    figure = new_figure(2.9)
    for ax, experiment in zip(figure.subplots(1, 2), EXPERIMENTS, strict=True):
        draw_curves(
            ax, results[experiment.name], "success", label="success",
            title=experiment.title, solved=experiment.solved, top=1.0,
        )  # fmt: skip
    figure.axes[0].legend(loc="center right")
    return [save(figure, out / "impala.png")]


STUDY = Study("impala", "the paper's presets on Chain and standard Catch", EXPERIMENTS, draw)
