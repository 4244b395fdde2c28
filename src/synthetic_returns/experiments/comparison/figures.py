"""The figures of a comparison: learning curves, performance profiles, and success at the end."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes

from synthetic_returns.experiments.comparison.records import THRESHOLDS
from synthetic_returns.experiments.comparison.summary import MethodSummary, success_scores
from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import STYLE, legend_below, new_figure, save
from synthetic_returns.experiments.method_arms import method_arm
from synthetic_returns.experiments.outcome import Outcomes
from synthetic_returns.utils.scores import performance_profile

__all__ = ["draw_comparison"]

COLUMNS = 3


def draw_comparison(
    results: Mapping[str, Outcomes], overall: Sequence[MethodSummary], out: Path
) -> list[Path]:
    """Draws curves.png and profiles.png in a folder; returns their paths.

    Args:
      results: by task, the finished runs of each method.
      overall: the summary of each method over all tasks.
      out: the folder.
    """
    with matplotlib.rc_context(STYLE):
        return [_draw_all_curves(results, out), _draw_profiles(results, overall, out)]


def _draw_all_curves(results: Mapping[str, Outcomes], out: Path) -> Path:
    rows = math.ceil(len(results) / COLUMNS)
    columns = min(COLUMNS, len(results))
    figure = new_figure(2.4 * rows + 0.7)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for ax, (task, outcomes) in zip(axes, results.items(), strict=False):
        experiment = next(iter(outcomes.values()))[0].experiment
        draw_curves(
            ax, outcomes, "success", label="success", title=task, solved=experiment.solved,
            top=1.0, seeds=False,
        )  # fmt: skip
    for ax in axes[len(results) :]:
        ax.set_visible(False)
    legend_below(figure, columns=7)
    return save(figure, out / "curves.png")


def _draw_profiles(
    results: Mapping[str, Outcomes], overall: Sequence[MethodSummary], out: Path
) -> Path:
    figure = new_figure(1.5 + 0.24 * len(overall))
    profile, success = figure.subplots(1, 2, width_ratios=(1.2, 1))
    for summary in overall:
        share = performance_profile(success_scores(results, summary.method), THRESHOLDS)
        profile.step(THRESHOLDS, share, where="post", color=_colour(summary), linewidth=1.6)
    profile.set_title("Performance profiles")
    profile.set_xlabel("success at the end, more than")
    profile.set_ylabel("share of the runs")
    profile.set_ylim(-0.03, 1.06)
    _draw_success(success, overall)
    return save(figure, out / "profiles.png")


def _draw_success(ax: Axes, overall: Sequence[MethodSummary]) -> None:
    ordered = sorted(overall, key=lambda summary: summary.success.value)
    for place, summary in enumerate(ordered):
        estimate = summary.success
        ax.plot([estimate.low, estimate.high], [place, place], color=_colour(summary), linewidth=3,
                alpha=0.5, solid_capstyle="butt")  # fmt: skip
        ax.scatter(estimate.value, place, color=_colour(summary), s=22, zorder=3)
    ax.set_yticks(range(len(ordered)), [summary.method for summary in ordered])
    ax.set_xlim(-0.03, 1.03)
    ax.set_title("Success at the end")
    ax.set_xlabel("interquartile mean, 95 % interval")


def _colour(summary: MethodSummary) -> str:
    return method_arm(summary.method).colour
