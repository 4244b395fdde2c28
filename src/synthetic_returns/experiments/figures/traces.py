"""The credit over example episodes, with what happened in them."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from synthetic_returns.experiments.outcome import Outcome
from synthetic_returns.training.traces import Trace
from synthetic_returns.viewer.main_line import main_line
from synthetic_returns.viewer.recording import Recording

__all__ = ["draw_trace", "draw_traces", "shade_phases"]

MARKERS = {"diamond": "D", "circle": "o", "square": "s", "triangle": "^", "cross": "x", "star": "*"}
RARE = 3  # events that happen up to so often get a line from top to bottom
PHASES = ("#dbe9f9", "#fbe3ea", "#fdf3cf")  # blue, pink and yellow, as in the paper


def draw_trace(ax: Axes, trace: Trace, title: str = "") -> None:
    """Draws the credit over one episode; markers and dotted lines are events."""
    line = main_line(Recording.from_trace(trace))
    ax.plot(line.values, color="#333333", linewidth=1)
    for event, steps in line.marks.items():
        style, label = line.styles[event], event.replace("_", " ")
        if len(steps) <= RARE:
            for step in steps:
                ax.axvline(float(step), color=style.light, linestyle=":", linewidth=1.6)
            ax.plot([], [], color=style.light, linestyle=":", label=label)
        else:
            ax.scatter(steps, line.values[steps], s=16, marker=MARKERS[style.shape],
                       color=style.light, zorder=3, label=label)  # fmt: skip
    ax.set_title(title)
    ax.set_xlabel("step of the episode")
    ax.set_ylabel(line.label)
    ax.set_xlim(0, len(line.values) - 1)


def draw_traces(figure: FigureBase, outcome: Outcome) -> list[Axes]:
    """Draws three example episodes: early in learning, in the middle of it, and late."""
    axes = list(figure.subplots(1, 3, sharey=True))
    for ax, letter, trace in zip(axes, "ABC", outcome.example_traces(), strict=False):
        title = f"{letter}: at {trace.step / 1e6:.2f} M steps, return {trace.reward.sum():g}"
        draw_trace(ax, trace, title)
        ax.label_outer()
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
