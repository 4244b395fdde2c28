"""Synthetic returns over example episodes, with what happened in them."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from synthetic_returns.experiments.outcome import Outcome
from synthetic_returns.training.traces import Trace

__all__ = ["draw_trace", "draw_traces", "shade_phases"]

MARKERS = {
    "catch": ("^", "#2a9d4a", "catch"),
    "miss": ("x", "#c0392b", "miss"),
    "gate": ("^", "#2a9d4a", "gate passed"),
    "apple": ("o", "#2a9d4a", "apple"),
    "door": ("s", "#8e44ad", "door"),
}
LINES = {"key": "#b8860b", "yellow_key": "#b8860b", "red_key": "#c0392b", "trigger": "#666666"}
PHASES = ("#dbe9f9", "#fbe3ea", "#fdf3cf")  # blue, pink and yellow, as in the paper


def draw_trace(ax: Axes, trace: Trace, title: str = "") -> None:
    """Draws c over one episode; markers and dotted lines are events."""
    ax.plot(trace.c, color="#333333", linewidth=1)
    for event, happened in trace.events.items():
        at = np.flatnonzero(happened)
        if event in MARKERS:
            marker, colour, name = MARKERS[event]
            ax.scatter(at, trace.c[at], s=16, marker=marker, color=colour, zorder=3, label=name)
        elif event in LINES:
            for step in at:
                ax.axvline(float(step), color=LINES[event], linestyle=":", linewidth=1.6)
            ax.plot([], [], color=LINES[event], linestyle=":", label=event.replace("_", " "))
    ax.set_title(title)
    ax.set_xlabel("step of the episode")
    ax.set_xlim(0, len(trace.c) - 1)


def draw_traces(figure: FigureBase, outcome: Outcome) -> list[Axes]:
    """Draws three example episodes: early in learning, in the middle of it, and late."""
    axes = list(figure.subplots(1, 3, sharey=True))
    for ax, letter, trace in zip(axes, "ABC", outcome.example_traces(), strict=False):
        title = f"{letter}: at {trace.step / 1e6:.2f} M steps, return {trace.reward.sum():g}"
        draw_trace(ax, trace, title)
    axes[0].set_ylabel("synthetic return c")
    figure.legend(*axes[-1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return axes


def shade_phases(ax: Axes, lengths: Sequence[int]) -> None:
    """Colours the background of the phases of an episode."""
    left, right = ax.get_xlim()
    start = 0
    for length, colour in zip(lengths, PHASES, strict=True):
        ax.axvspan(start, start + length, color=colour, zorder=0, linewidth=0)
        start += length
    ax.set_xlim(left, right)
