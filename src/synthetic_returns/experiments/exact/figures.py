"""Figures: how well credit correlates with the exact one, and whether it errs by bias or noise."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from synthetic_returns.experiments.exact.probe import BASELINE, REFERENCE
from synthetic_returns.experiments.exact.summary import by_run, pooled
from synthetic_returns.experiments.figures.style import new_figure, save
from synthetic_returns.experiments.method_arms import method_arm
from synthetic_returns.utils.tables import Row

__all__ = ["draw_all"]

GREY = "#8a8a8a"
WIDE, HIGH = 0.5, 0.1  # of a label, in the units of the axes
REACH = 2.5  # of bias and deviation in the figure; what lies beyond stands at its edge


def draw_all(
    rows: Sequence[Row], summary: Sequence[Row], titles: Mapping[str, str], out: Path
) -> list[Path]:
    """Draws exact.png, exact-errors.png and exact-curves.png; gives their paths.

    Args:
      rows: of all runs.
      summary: of these.
      titles: of the tasks, by name.
      out: the folder.
    """
    tasks = [task for task in titles if any(row["task"] == task for row in summary)]
    mean = {
        method: np.mean([r["correlation"] for r in summary if r["method"] == method])
        for method in dict.fromkeys(row["method"] for row in summary)
    }
    methods = sorted(mean, key=lambda method: mean[method])
    return [
        _draw_correlations(rows, summary, {task: titles[task] for task in tasks}, methods, out),
        _draw_errors(summary, {task: titles[task] for task in tasks}, out),
        _draw_curves(rows, {task: titles[task] for task in tasks}, methods[::-1], out),
    ]


def _draw_correlations(
    rows: Sequence[Row],
    summary: Sequence[Row],
    titles: Mapping[str, str],
    methods: Sequence[str],
    out: Path,
) -> Path:
    """A row for each method, a column for each task, a dot for each seed."""
    runs = by_run(rows)
    figure = new_figure(1.3 + 0.25 * len(methods))
    axes = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    for ax, (task, title) in zip(axes, titles.items(), strict=True):
        ax.axvline(0, color="#bbbbbb", linewidth=0.9)
        for place, method in enumerate(methods):
            for policy, lift, fill in (("random", 0.14, True), ("learning", -0.14, False)):
                if (task, policy, method) not in runs:
                    continue
                every = policy == "learning"
                found = [pooled(r, all_of_it=every) for r in runs[task, policy, method]]
                values = [measures["correlation"] for measures in found]
                colour = _colour(method)
                face = colour if fill else "white"
                y = place + lift
                ax.plot([min(values), max(values)], [y, y], color=colour, alpha=0.35, linewidth=2)
                ax.scatter(values, [y] * len(values), color=colour, s=3, alpha=0.6, linewidths=0)
                ax.scatter(np.mean(values), y, facecolor=face, edgecolor=colour, s=26, zorder=3,
                           linewidths=1.2)  # fmt: skip
        ax.set_title(title)
        ax.set_xlim(-0.45, 1.05)
        ax.set_xticks([0, 0.5, 1])
        ax.set_xlabel("correlation")
        ax.grid(axis="y", visible=False)
        for place in range(0, len(methods), 2):
            ax.axhspan(place - 0.5, place + 0.5, color="#f6f6f6", zorder=0)
    axes[0].set_ylim(-0.6, len(methods) - 0.4)
    axes[0].set_yticks(range(len(methods)), methods)
    for label in axes[0].get_yticklabels():
        label.set_color(_colour(label.get_text()))
    dot = {"marker": "o", "linestyle": "", "markeredgecolor": "#444444", "markersize": 5.5}
    figure.legend(
        [Line2D([], [], markerfacecolor="#444444", **dot),
         Line2D([], [], markerfacecolor="white", **dot)],
        ["random policy, at the end", "while the policy learns from it, all of the training"],
        loc="outside lower center", ncols=2,
    )  # fmt: skip
    figure.suptitle(
        "Is the credit right? Correlation of what is paid with the exact advantage",
        x=0.01, ha="left", fontsize=11, weight="bold",
    )  # fmt: skip
    return save(figure, out / "exact.png")


def _draw_errors(summary: Sequence[Row], titles: Mapping[str, str], out: Path) -> Path:
    """Bias against deviation: both are 0 for what is right, and (1, 0) is paying nothing."""
    figure = new_figure(4.0 * math.ceil(len(titles) / 2) + 0.3)
    axes = list(figure.subplots(math.ceil(len(titles) / 2), 2, squeeze=False).flat)
    for ax in axes:
        ax.set_visible(False)
    for ax, (task, title) in zip(axes, titles.items(), strict=False):
        ax.set_visible(True)
        circle = np.linspace(0, np.pi / 2, 100)
        ax.fill_between(np.cos(circle), np.sin(circle), color="#f3f7f0", zorder=0)
        found = [r for r in summary if r["task"] == task and r["policy"] == "random"]
        _draw_points(ax, found)
        ax.set_xlim(0, REACH)
        ax.set_ylim(0, REACH)
        ax.set_title(title)
        ax.set_xlabel("bias / size of the exact credit")
        ax.set_ylabel("standard deviation / size")
    figure.suptitle(
        "How credit errs, random policy: by bias or by luck (green: better than paying nothing)",
        x=0.01, ha="left", fontsize=11, weight="bold",
    )  # fmt: skip
    return save(figure, out / "exact-errors.png")


def _draw_points(ax: Axes, rows: Sequence[Row]) -> None:
    """A labelled point for each method; what lies beyond the edge says by how much."""
    places = [(min(row["bias"], REACH), min(row["deviation"], REACH)) for row in rows]
    labels: list[tuple[float, float]] = []

    def taken(x: float, y: float) -> bool:
        beside_label = any(abs(x - u) < WIDE and abs(y - v) < HIGH for u, v in labels)
        return beside_label or any(0.02 < u - x < WIDE and abs(y - v) < HIGH / 2 for u, v in places)

    for row in sorted(rows, key=lambda row: row["deviation"]):
        x, y = min(row["bias"], REACH), min(row["deviation"], REACH)
        beyond = max(row["bias"], row["deviation"])
        text = row["method"] if beyond <= REACH else f"{row['method']} ({beyond:.0f})"
        lift = y
        while taken(x, lift):
            lift += HIGH / 8
        labels.append((x, lift))
        colour = _colour(row["method"])
        ax.scatter(x, y, color=colour, s=24, zorder=3, clip_on=False)
        ax.annotate(
            text, (x, y), (x + 0.05, lift), fontsize=7.5, color=colour, va="center",
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": colour, "shrinkB": 2},
        )  # fmt: skip


def _draw_curves(
    rows: Sequence[Row], titles: Mapping[str, str], methods: Sequence[str], out: Path
) -> Path:
    """A panel for each method: the correlation over the training, with a random policy."""
    methods = [method for method in methods if method != BASELINE]
    number, columns = len(methods), 5
    figure = new_figure(1.45 * math.ceil(number / columns) + 0.8)
    axes = figure.subplots(
        math.ceil(number / columns), columns, sharex=True, sharey=True, squeeze=False
    )
    for ax in list(axes.flat)[number:]:
        ax.set_visible(False)
    for ax, method in zip(axes.flat, methods, strict=False):
        for task, colour in zip(titles, ("#e8710a", "#1f77b4", "#1b7f3b", "#7a2fb0"), strict=False):
            _draw_one(ax, [r for r in rows if r["task"] == task and r["method"] == method], colour)
        ax.set_title(method, fontsize=9)
        ax.set_ylim(-0.25, 1.05)
        ax.set_xscale("log", base=2)
        ax.set_xticks([1 / 64, 1 / 8, 1], ["1/64", "1/8", "1"])
    colours = ("#e8710a", "#1f77b4", "#1b7f3b", "#7a2fb0")
    figure.legend(
        [Line2D([], [], color=colour) for colour in colours[: len(titles)]], list(titles.values()),
        loc="outside lower center", ncols=4,
    )  # fmt: skip
    axes[-1, columns // 2].set_xlabel("share of the episodes")
    figure.supylabel("correlation with the exact advantage", fontsize=9)
    return save(figure, out / "exact-curves.png")


def _draw_one(ax: Axes, rows: Sequence[Row], colour: str) -> None:
    runs = [run for (_, policy, _), of in by_run(rows).items() if policy == "random" for run in of]
    if not runs:
        return
    share = [row["env_steps"] / runs[0][-1]["env_steps"] for row in runs[0]]
    curves = np.array([[row["correlation"] for row in run] for run in runs])
    ax.plot(share, curves.T, color=colour, alpha=0.35, linewidth=0.6)
    ax.plot(share, curves.mean(axis=0), color=colour, linewidth=1.7)


def _colour(method: str) -> str:
    return GREY if method == REFERENCE else method_arm(method).colour
