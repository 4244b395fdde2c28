"""Unharmed: the default method where every reward follows its cause at once."""

from pathlib import Path

from synthetic_returns.experiments.experiment import NONE, Experiment
from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import new_figure, save
from synthetic_returns.experiments.method_arms import ADVANCE
from synthetic_returns.experiments.study import Results, Study

__all__ = ["CATCH", "STUDY"]

CATCH = Experiment(
    name="unharmed-catch",
    title="Catch, every ball paid at once",
    task="catch",
    steps=150_000,
    solved=0.98,
    credited="catch",
    arms=(ADVANCE, NONE),
)


def draw(results: Results, out: Path) -> list[Path]:
    """Success over steps, with the method and without."""
    figure = new_figure(2.4)
    ax = figure.subplots()
    draw_curves(
        ax, results[CATCH.name], "success", label="success", title=CATCH.title,
        solved=CATCH.solved, top=1.0,
    )  # fmt: skip
    ax.legend(loc="best")
    return [save(figure, out / "unharmed.png")]


STUDY = Study("unharmed", "rewards that come at once, beside none", (CATCH,), draw)
