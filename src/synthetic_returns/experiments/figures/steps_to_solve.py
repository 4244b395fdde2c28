"""Steps to solve a task, arm by arm: every seed is a mark."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes

from synthetic_returns.experiments.experiment import Experiment
from synthetic_returns.experiments.figures.style import new_figure, save, steps_axis
from synthetic_returns.experiments.outcome import Outcomes
from synthetic_returns.experiments.study import Results

__all__ = ["draw_steps_to_solve"]


def draw_steps_to_solve(results: Results, experiments: Sequence[Experiment], path: Path) -> Path:
    """A panel for each experiment.

    Args:
      results: of all of them.
      experiments: with the same arms.
      path: of the picture.
    """
    figure = new_figure(3.2)
    axes = figure.subplots(1, len(experiments), sharey=True)
    for ax, experiment in zip(axes, experiments, strict=True):
        _draw_panel(ax, experiment, results[experiment.name])
    figure.supxlabel("million steps to solve it; cross: not solved", fontsize="medium")
    return save(figure, path)


def _draw_panel(ax: Axes, experiment: Experiment, outcomes: Outcomes) -> None:
    """A row for each arm; a cross at the right for a seed that did not solve the task."""
    for place, runs in enumerate(outcomes.values()):
        for run in runs:
            solving = run.solving
            at = run.steps[solving.row] if solving else run.steps[-1]
            marker = "o" if solving else "x"
            ax.scatter(at, place, marker=marker, color=run.arm.colour, s=28, alpha=0.8)
    ax.set_yticks(range(len(outcomes)), [runs[0].arm.label for runs in outcomes.values()])
    ax.set_ylim(len(outcomes) - 0.5, -0.5)
    ax.set_title(experiment.title.replace(", ", ",\n"))  # panels are narrow
    steps_axis(ax)
    ax.set_xlabel("")  # one for all of them
    ax.set_xlim(0, 1.04 * experiment.steps)
