"""The credit over example episodes, with what happened in them."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from synthetic_returns.envs.spec import EventMark
from synthetic_returns.training.traces import Trace
from synthetic_returns.viewer.event_style import marked_steps
from synthetic_returns.viewer.main_line import main_line
from synthetic_returns.viewer.meaning import credit_of_events, difference_in_words
from synthetic_returns.viewer.recording import Recording

__all__ = ["draw_trace", "draw_traces", "rare_events", "shade_phases"]

Marks = Mapping[str, EventMark]
MARKERS = {"diamond": "D", "circle": "o", "square": "s", "triangle": "^", "cross": "x", "star": "*"}
RARE = 3  # events that happen up to so often get a line from top to bottom
PHASES = ("#dbe9f9", "#fbe3ea", "#fdf3cf")  # blue, pink and yellow, as in the paper


def draw_trace(
    ax: Axes,
    trace: Trace,
    title: str = "",
    *,
    marks: Marks | None = None,
    rare: Collection[str] | None = None,
) -> None:
    """Draws the credit over one episode; markers and dotted lines are events.

    Args:
      ax: where to.
      trace: the episode.
      title: of the panel.
      marks: how events are marked, by name.
      rare: the events that get a line from top to bottom; by default those that happen up to
        three times.
    """
    line = main_line(_recording(trace, marks))
    rare = rare_events([trace]) if rare is None else rare
    ax.plot(line.values, color="#333333", linewidth=1)
    for event, steps in line.marks.items():
        style, label = line.styles[event], event.replace("_", " ")
        if event in rare:
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


def rare_events(traces: Sequence[Trace]) -> set[str]:
    """Events that happen at most three times in each of some episodes."""
    marked = [marked_steps(trace.events) for trace in traces]
    names = {name for steps in marked for name in steps}
    return {name for name in names if all(len(steps.get(name, ())) <= RARE for steps in marked)}


def draw_traces(
    figure: FigureBase,
    traces: Sequence[Trace],
    *,
    marks: Marks | None = None,
    stacked: bool = False,
) -> list[Axes]:
    """Draws three example episodes on one scale: early in training, in the middle of it, late.

    Args:
      figure: where to.
      traces: the episodes.
      marks: how events are marked, by name.
      stacked: one above the other, with what the events earn, instead of side by side.
    """
    grid = (3, 1) if stacked else (1, 3)
    axes = list(figure.subplots(*grid, sharex=stacked, sharey=True))
    rare = rare_events(traces)
    for ax, trace, when in zip(axes, traces, ("early", "learning", "late"), strict=False):
        result = f"return {trace.reward.sum():g}"
        if stacked:
            result = difference_in_words(credit_of_events([_recording(trace)])) or result
        title = f"{when}, {trace.step / 1e6:.2f} M steps: {result}"
        draw_trace(ax, trace, title, marks=marks, rare=rare)
        ax.title.set_fontsize("medium")
        if stacked:
            ax.set_ylabel("")
        ax.label_outer()
    if stacked:
        figure.supylabel(main_line(_recording(traces[-1])).label, fontsize="medium")
    labels = {
        label: handle
        for ax in axes
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend(list(labels.values()), list(labels), loc="outside lower center", ncols=4)
    return axes


def _recording(trace: Trace, marks: Marks | None = None) -> Recording:
    return dataclasses.replace(Recording.from_trace(trace), event_marks=marks or {})


def shade_phases(ax: Axes, lengths: Sequence[int]) -> None:
    """Colours the background of the phases of an episode."""
    left, right = ax.get_xlim()
    start = 0
    for length, colour in zip(lengths, PHASES, strict=True):
        ax.axvspan(start, start + length, color=colour, zorder=0, linewidth=0)
        start += length
    ax.set_xlim(left, right)
