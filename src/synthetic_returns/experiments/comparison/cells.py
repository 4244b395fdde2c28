"""The table of a comparison as text: on the terminal, on the page and in Markdown."""

from collections.abc import Sequence

import numpy as np

from synthetic_returns.experiments.comparison.summary import ALL, Estimate, MethodSummary

__all__ = ["HEADER", "NOTES", "cells", "markdown_table", "ranked", "short_cells"]

HEADER = (
    *("method", "solved", "steps / oracle's", "success at the end", "better than none"),
    *("s per 1M steps", "peak MB"),
)
NOTES = (
    "Steps and success are interquartile means over the seeds, with 95 % bootstrap intervals "
    "stratified by task.",
    "Steps to solve a task are a multiple of the oracle's. A run that did not solve it counts with "
    "all its steps; ≥ marks where this makes the number a lower bound.",
    "Better than none: the probability that a run has more success at the end than one without "
    "credit; 0.5 is no difference.",
)


def cells(summary: MethodSummary) -> tuple[str, ...]:
    """The cells of one method."""
    improvement = summary.improvement
    everywhere = summary.tasks == summary.of_tasks
    tasks = "1 task" if summary.tasks == 1 else f"{summary.tasks} tasks"
    return (
        summary.method if everywhere else f"{summary.method}, {tasks}",
        f"{summary.solved} of {summary.runs}",
        _multiple(summary),
        _text(summary.success, 2),
        _text(improvement, 2) if improvement else "-",
        _whole(summary.seconds),
        _whole(summary.memory_mb),
    )


def short_cells(summary: MethodSummary) -> tuple[str, ...]:
    """The same for a narrow terminal."""
    improvement = summary.improvement
    found = list(cells(summary))
    found[1] = f"{summary.solved}/{summary.runs}"
    found[4] = f"{improvement.value:.2f}" if improvement else "-"
    return tuple(found)


def ranked(summaries: Sequence[MethodSummary], task: str) -> list[MethodSummary]:
    """The methods on a task: first those that solve it most often, then by success and steps."""
    return sorted(
        (summary for summary in summaries if summary.task == task),
        key=lambda s: (
            -s.solved / s.runs,
            -round(s.success.value, 2),
            s.multiple.value if s.multiple else np.inf,
        ),
    )


def markdown_table(summaries: Sequence[MethodSummary]) -> str:
    """All tasks in one table."""
    tasks = dict.fromkeys(summary.task for summary in summaries)
    lines = [("task", *HEADER), ("---",) * (1 + len(HEADER))]
    for task in tasks:
        name = "all tasks" if task == ALL else task
        lines += [(name, *cells(summary)) for summary in ranked(summaries, task)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _multiple(summary: MethodSummary) -> str:
    if summary.multiple is None:
        return "-"
    return f"{'≥ ' if summary.at_least else ''}{_text(summary.multiple, 1)}"


def _text(estimate: Estimate, digits: int) -> str:
    value, low, high = (
        f"{x:.{digits}f}" for x in (estimate.value, estimate.low, estimate.high)
    )  # fmt: skip
    return f"{value} ({low}-{high})"


def _whole(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.0f}"
