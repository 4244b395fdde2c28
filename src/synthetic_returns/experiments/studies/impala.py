"""The paper's agent, faithful: the Chain with its own settings."""

import dataclasses
from pathlib import Path

from synthetic_returns.experiments.experiment import NONE, PAPER, Bar
from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import new_figure, save
from synthetic_returns.experiments.studies.chain import CHAIN
from synthetic_returns.experiments.study import Results, Study

__all__ = ["CHAIN_FAITHFUL", "STUDY"]

CHAIN_FAITHFUL = dataclasses.replace(
    CHAIN,
    name="impala-chain",
    title="Chain, the paper's settings",
    steps=1_000_000,
    arms=(PAPER, dataclasses.replace(NONE, preset="paper")),
    bars=(
        Bar("paper", "eval_success", at_least=0.98),
        Bar("none", "eval_success", at_most=0.05),
    ),
    quick_steps=None,
)


def draw(results: Results, out: Path) -> list[Path]:
    """Learning curves."""
    figure = new_figure(2.9)
    ax = figure.subplots()
    draw_curves(
        ax, results[CHAIN_FAITHFUL.name], "success", label="success",
        title=CHAIN_FAITHFUL.title, solved=CHAIN_FAITHFUL.solved, top=1.0,
    )  # fmt: skip
    ax.legend(loc="center right")
    return [save(figure, out / "impala.png")]


STUDY = Study("impala", "the paper's presets on the Chain", (CHAIN_FAITHFUL,), draw)
