"""Learning curves in the paper's form: every seed thin, the mean thick."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from synthetic_returns.experiments.figures.style import steps_axis
from synthetic_returns.experiments.outcome import Outcome, Outcomes
from synthetic_returns.utils.statistics import align_curves

__all__ = ["draw_curves", "mean_curve"]

POINTS = 200


def draw_curves(
    ax: Axes,
    outcomes: Outcomes,
    metric: str,
    *,
    label: str,
    title: str = "",
    solved: float | None = None,
    top: float | None = None,
    seeds: bool = True,
) -> None:
    """Draws one metric of all runs of an experiment.

    Args:
      ax: where to.
      outcomes: the runs, by arm.
      metric: a column of the metrics.
      label: what the metric is called.
      title: of the panel.
      solved: where to draw the line of the solved task.
      top: the largest value that is possible.
      seeds: whether every seed is drawn; with many arms, the means alone can be told apart.
    """
    for runs in outcomes.values():
        arm = runs[0].arm
        for run in runs if seeds else ():
            ax.plot(run.steps, run.curve(metric), color=arm.colour, alpha=0.45, linewidth=0.7)
        ax.plot(*mean_curve(runs, metric), color=arm.colour, label=arm.label,
                linewidth=2.2 if seeds else 1.4)  # fmt: skip
    if solved is not None:
        ax.axhline(solved, color="#888888", linewidth=0.9, linestyle=(0, (4, 3)))
    if top is not None:
        ax.set_ylim(-0.03 * top, 1.06 * top)
    ax.set_title(title)
    ax.set_ylabel(label)
    ax.set_xlim(left=0)
    steps_axis(ax)


def mean_curve(runs: Sequence[Outcome], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """The mean over the runs, from where all have a value to where the first one ends."""
    curves = [(run.steps, run.curve(metric)) for run in runs]
    grid, values = align_curves(curves, POINTS)
    return grid, values.mean(axis=0) if len(values) else grid
