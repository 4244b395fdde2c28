"""The page of a comparison, in the style of the report."""

import datetime
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from synthetic_returns.experiments.comparison.cells import HEADER, NOTES, cells, ranked
from synthetic_returns.experiments.comparison.records import THRESHOLDS
from synthetic_returns.experiments.comparison.run import Compared
from synthetic_returns.experiments.comparison.summary import (
    ALL,
    MethodSummary,
    overall,
    success_scores,
)
from synthetic_returns.experiments.method_arms import arm_number
from synthetic_returns.experiments.outcome import Outcomes
from synthetic_returns.report.chart import Bundle, draw_chart
from synthetic_returns.report.elements import make_legend, make_table
from synthetic_returns.report.interval_chart import draw_intervals
from synthetic_returns.report.report import facts_list
from synthetic_returns.report.styles import STYLES
from synthetic_returns.utils.scores import performance_profile
from synthetic_returns.viewer.markup import Markup, tag
from synthetic_returns.viewer.page import make_page, write_page

__all__ = ["write_comparison_page"]

FEW = 4  # methods up to which every seed is drawn


def write_comparison_page(compared: Compared, path: Path) -> Path:
    """Writes the page."""
    methods = list(dict.fromkeys(summary.method for summary in compared.summaries))
    runs = [run for outcomes in compared.results.values() for a in outcomes.values() for run in a]
    title = f"Credit methods side by side: {', '.join(compared.results)}"
    facts = {
        "tasks": len(compared.results),
        "methods": len(methods),
        "runs": len(runs),
        "agent": ", ".join(sorted({run.config["agent"]["name"] for run in runs})),
        "preset": ", ".join(sorted({run.config["preset"] for run in runs})),
        "written": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
    }
    body = tag(
        "div",
        tag("header", tag("h1", title), facts_list(facts), _contents(compared)),
        tag(
            "main",
            _overall(compared),
            [_task(compared, task) for task in compared.results] if _many(compared) else None,
            _missing(compared),
            _notes(compared),
        ),
    )
    return write_page(path, make_page(title, body, styles=STYLES))


def _many(compared: Compared) -> bool:
    return len(compared.results) > 1


def _contents(compared: Compared) -> Markup | None:
    if not _many(compared):
        return None
    links = [tag("li", tag("a", task, href=f"#{task}")) for task in compared.results]
    return tag("nav", tag("ul", links, class_="legend"), aria_label="Tasks")


def _overall(compared: Compared) -> Markup:
    """All tasks together; or the only one."""
    (only, *_) = compared.results
    task = ALL if _many(compared) else only
    summaries = overall(compared.summaries)
    profiles = [
        Bundle(
            s.method,
            arm_number(s.method),
            ((THRESHOLDS, performance_profile(success_scores(compared.results, s.method),
                                              THRESHOLDS)),),
            detailed=False,
        )
        for s in summaries
    ]  # fmt: skip
    charts = [
        *_interval_charts(summaries),
        draw_chart("performance profiles", profiles, note="share of runs with more success",
                   limits=(0.0, 1.0), across="success at the end"),
        None if _many(compared) else _curves(compared.results[only]),
    ]  # fmt: skip
    return tag(
        "section",
        tag("h2", "All tasks" if _many(compared) else only),
        make_table(HEADER, [cells(s) for s in ranked(compared.summaries, task)], "All tasks"),
        _legend(summaries),
        tag("div", charts, class_="charts"),
    )


def _task(compared: Compared, task: str) -> Markup:
    summaries = ranked(compared.summaries, task)
    outcomes = compared.results[task]
    experiment = next(iter(outcomes.values()))[0].experiment
    what = (
        f"{experiment.title}: {experiment.steps:,} steps a run, solved from a success of "
        f"{experiment.solved:g}."
    )
    return tag(
        "section",
        tag("h2", task, id=task),
        tag("p", what, class_="note"),
        make_table(HEADER, [cells(s) for s in summaries], task),
        _legend(summaries),
        tag("div", _curves(outcomes), _interval_charts(summaries), class_="charts"),
    )


def _curves(outcomes: Outcomes) -> Markup | None:
    """Learning curves; with many methods, the means alone."""
    detailed = len(outcomes) <= FEW
    experiment = next(iter(outcomes.values()))[0].experiment
    bundles = [
        Bundle(
            method,
            arm_number(method),
            tuple((run.steps.astype(np.float64), run.curve("success")) for run in runs),
            detailed,
        )
        for method, runs in outcomes.items()
    ]
    note = "mean, smoothed; dashed: solved"
    return draw_chart(
        "success while learning", bundles, note=note, level=experiment.solved, limits=(0.0, 1.0)
    )


def _interval_charts(summaries: Sequence[MethodSummary]) -> list[Markup | None]:
    ordered = sorted(summaries, key=lambda s: -s.success.value)
    better = [(s.method, arm_number(s.method), s.improvement) for s in ordered if s.improvement]
    return [
        draw_intervals(
            "success at the end", [(s.method, arm_number(s.method), s.success) for s in ordered],
            note="interquartile mean, 95 % interval",
        ),
        draw_intervals("better than none", better, note="probability of improvement; dashed: equal",
                       level=0.5),
    ]  # fmt: skip


def _legend(summaries: Sequence[MethodSummary]) -> Markup:
    return make_legend((s.method, arm_number(s.method)) for s in summaries)


def _missing(compared: Compared) -> Markup | None:
    if not compared.missing:
        return None
    return tag(
        "section",
        tag("h2", "Without a result"),
        [tag("p", tag("b", f"{m.method} on {m.task}"), f": {m.reason}") for m in compared.missing],
    )


def _notes(compared: Compared) -> Markup:
    first = [next(iter(outcomes.values()))[0] for outcomes in compared.results.values()]
    commands = [
        shlex.join(("synthetic-returns", "train", *run.experiment.arguments(run.arm, run.seed)))
        for run in first
    ]
    kept = (
        "All methods have their own defaults and all rewards are paid in full, but for the method "
        "that the preset was made for: it keeps the preset's settings, some of them tuned for the "
        "task."
    )
    return tag(
        "section",
        tag("h2", "How to read this"),
        [tag("p", note, class_="note") for note in (*NOTES, kept)],
        tag("h3", "The command of a run on each task"),
        tag("pre", tag("code", "\n".join(commands)), tabindex="0"),
    )
