"""The sections of a report, as markup."""

import shlex
from collections.abc import Callable, Sequence

import numpy as np

from synthetic_returns.experiments.solving import SOLVED
from synthetic_returns.report.arms import ArmRecord, TaskRecord, differing_settings
from synthetic_returns.report.chart import draw_chart
from synthetic_returns.report.credit_quality import CreditQuality
from synthetic_returns.report.elements import make_legend, make_table
from synthetic_returns.report.example_episode import example_episodes
from synthetic_returns.report.published import find_experiment, published
from synthetic_returns.report.run_record import RunRecord
from synthetic_returns.utils.scores import (
    interquartile_mean,
    probability_of_improvement,
    stratified_interval,
)
from synthetic_returns.utils.settings import dotted
from synthetic_returns.viewer.markup import Markup, tag

__all__ = ["commands", "credit", "curves", "diagnostics", "outcomes", "settings", "throughput"]

CREDIT = "credit/"  # begins the name of every diagnostic of a credit method
Qualities = Sequence[tuple[RunRecord, CreditQuality]]


def credit(task: TaskRecord, qualities: Qualities) -> Markup:
    """How good the credit is, and an episode in which it can be seen."""
    cards = [_card(record, quality) for record, quality in qualities]
    with_sr = [run for run in task.runs if run.config.has_credit]
    examples = [figure for run in with_sr[:1] for figure in example_episodes(run)]
    if not cards and not examples:
        return tag("p", "These agents learned without credit.", class_="note")
    return tag("div", tag("div", cards, class_="cards") if cards else None, examples)


def curves(task: TaskRecord) -> Markup:
    """Learning curves: every seed, the mean, and its bootstrap interval."""
    experiment = find_experiment(task.config)
    solved = experiment.solved if experiment else SOLVED
    charts = [
        draw_chart(
            "success", [arm.bundle("success", smoothed=True) for arm in task.arms],
            note="smoothed; dashed: solved", level=solved, limits=(0.0, 1.0),
        ),
        draw_chart(
            "return", [arm.bundle("episode_return", smoothed=True) for arm in task.arms],
            note="smoothed",
        ),
    ]  # fmt: skip
    return tag("div", _legend(task.arms), tag("div", charts, class_="charts"))


def diagnostics(task: TaskRecord) -> Markup:
    """What the credit method says about itself, and whether its credit has come to rest."""
    runs = [run for arm in task.arms for run in arm.runs]
    names = dict.fromkeys(name for run in runs for name in run.metrics if name.startswith(CREDIT))
    charts = [_diagnostic(task, name) for name in names]
    charts.append(
        draw_chart("drift of the credit", [arm.drift_bundle() for arm in task.arms],
                   note="relative change on the same episode", limits=(0.0, None))
    )  # fmt: skip
    found = [chart for chart in charts if chart]
    if not found:
        return tag("p", "These agents learned without credit.", class_="note")
    return tag("div", found, class_="charts")


def _diagnostic(task: TaskRecord, name: str) -> Markup | None:
    # What explains worse than nothing does so without limit, mostly at the start.
    is_share = name.startswith(f"{CREDIT}explained")
    return draw_chart(
        name.removeprefix(CREDIT).replace("_", " "),
        [arm.bundle(name, smoothed=True) for arm in task.arms],
        note="smoothed; 1 is all" if is_share else "smoothed",
        limits=(-0.1, 1.0) if is_share else (None, None),
    )


def outcomes(task: TaskRecord) -> Markup:
    """Steps to solve and what was reached, run by run, with the paper's numbers."""
    experiment = find_experiment(task.config)
    solved = experiment.solved if experiment else SOLVED
    arms = [_arm_row(arm, task, solved) for arm in task.arms]
    runs = [_run_row(arm, run, solved) for arm in task.arms for run in arm.runs]
    return tag(
        "div",
        make_table(("arm", "solved", "steps to solve", "seconds to solve", "return", "success",
                    "better than no credit", "the paper"), arms, "Arms"),
        tag("h3", "Every run"),
        make_table(("arm", "seed", "steps", "steps to solve", "return", "95 % interval", "success",
                    "run"), runs, "Runs"),
        tag("p", f"Solved: the smoothed training success reaches {solved:g} and stays above 95 % "
            "of that. Steps and seconds are the median over the seeds that solved it, and their "
            "range. Return and success are interquartile means over the seeds with 95 % bootstrap "
            "intervals. Better than no credit: the probability that a run has a higher return at "
            "the end.", class_="note"),
    )  # fmt: skip


def throughput(task: TaskRecord) -> Markup:
    """Environment steps per second, of whole runs and over time."""
    rows = []
    for arm in task.arms:
        done = [run.summary for run in arm.runs if run.summary]
        rates = [summary["steps_per_s"] for summary in done if "steps_per_s" in summary]
        seconds = [summary["wall_s"] for summary in done]
        rows.append((arm.label, _spread(rates, "{:,.0f}"), _spread(seconds, "{:,.0f}")))
    chart = draw_chart(
        "steps per second", [arm.bundle("steps_per_s") for arm in task.arms], limits=(0.0, None)
    )
    table = make_table(("arm", "steps per second", "seconds"), rows, "Throughput")
    return tag("div", table, tag("div", chart, class_="charts"))


def settings(task: TaskRecord) -> Markup:
    """In what the arms differ, and everything they were set to."""
    configs = [arm.runs[0].config for arm in task.arms]
    differences = differing_settings(configs)
    header = ("setting", *(arm.label for arm in task.arms))
    rows = [(name, *map(_value, values)) for name, values in differences.items()]
    shown = (
        make_table(header, rows, "Differences")
        if rows
        else tag("p", "All runs have the same settings, but for their seeds.", class_="note")
    )
    everything = [
        tag(
            "details",
            tag("summary", f"All settings: {arm.label}"),
            make_table(("setting", "value"),
                   [(name, _value(value)) for name, value in _all_settings(arm)], "Settings"),
        )
        for arm in task.arms
    ]  # fmt: skip
    return tag("div", shown, everything)


def commands(task: TaskRecord) -> Markup:
    """The command of every run."""
    lines = [shlex.join(["synthetic-returns", *run.run.command[1:]]) for run in task.runs]
    versions = ", ".join(sorted({run.run.version for run in task.runs}))
    return tag(
        "div",
        tag("pre", tag("code", "\n".join(dict.fromkeys(lines))), tabindex="0"),
        tag("p", f"synthetic-returns {versions}", class_="note"),
    )


def _card(record: RunRecord, quality: CreditQuality) -> Markup:
    verdict = "✓ holds" if quality.holds else "✗ does not hold"
    return tag(
        "div",
        tag("p", quality.shown(quality.value), class_="figure"),
        tag("p", quality.question),
        tag("p", tag("b", verdict), f", required {quality.shown(quality.required)}",
            class_="verdict"),
        tag("p", f"seed {record.config.seed}: {quality.detail}", class_="note"),
        class_=f"card {'good' if quality.holds else 'bad'}",
    )  # fmt: skip


def _legend(arms: Sequence[ArmRecord]) -> Markup:
    return make_legend(
        (f"{arm.label}, {len(arm.runs)} seed{'s' if len(arm.runs) != 1 else ''}", arm.number)
        for arm in arms
    )


def _arm_row(arm: ArmRecord, task: TaskRecord, solved: float) -> tuple[str, ...]:
    times = [found for run in arm.runs if (found := run.solved_at(solved))]
    return (
        arm.label,
        f"{len(times)} of {len(arm.runs)}",
        _spread([steps / 1e6 for steps, _ in times], "{:.2f} M"),
        _spread([seconds for _, seconds in times], "{:.0f}"),
        _estimate(interquartile_mean, "{:.2f}", _results(arm, "return_mean")),
        _estimate(interquartile_mean, "{:.3f}", _results(arm, "success")),
        _improvement(arm, task),
        published(arm.runs[0].config) or "-",
    )


def _improvement(arm: ArmRecord, task: TaskRecord) -> str:
    """How likely the arm is better than the one without credit, if there is one."""
    without = [other for other in task.arms if not other.runs[0].config.has_credit]
    if len(without) != 1 or without == [arm]:
        return "-"
    pair = (_results(a, "return_mean") for a in (arm, *without))
    return _estimate(probability_of_improvement, "{:.2f}", *pair)


def _results(arm: ArmRecord, name: str) -> np.ndarray:
    """One number of the final evaluation of every run that has it."""
    found = [run.summary["eval"].get(name) for run in arm.runs if run.summary]
    return np.array([value for value in found if value is not None], np.float64)


def _estimate(statistic: Callable[..., np.ndarray], form: str, *arms: np.ndarray) -> str:
    """A statistic of the runs of one or more arms, with its interval."""
    if not all(map(len, arms)):
        return "-"
    scores = [[runs] for runs in arms]
    low, high = stratified_interval(statistic, *scores)
    value, low, high = (form.format(float(x)) for x in (statistic(*scores), low, high))
    return value if low == high else f"{value} ({low} .. {high})"


def _run_row(arm: ArmRecord, run: RunRecord, solved: float) -> tuple[str, ...]:
    time = run.solved_at(solved)
    steps = f"{time[0] / 1e6:.2f} M" if time else "-"
    seed, trained = str(run.config.seed), f"{run.metrics['env_steps'][-1]:,}"
    where = str(run.opened.path)
    if run.summary is None:
        return (arm.label, seed, trained, steps, "not finished", "-", "-", where)
    result = run.summary["eval"]
    interval = f"{result['return_low']:.2f} .. {result['return_high']:.2f}"
    return (arm.label, seed, trained, steps, f"{result['return_mean']:.2f}", interval,
            _spread([result.get("success", np.nan)], "{:.3f}"), where)  # fmt: skip


def _spread(values: Sequence[float | int], form: str) -> str:
    known = [value for value in values if value is not None and np.isfinite(value)]
    if not known:
        return "-"
    middle, low, high = (form.format(f(known)) for f in (np.median, min, max))
    return middle if low == high else f"{middle} ({low} .. {high})"


def _all_settings(arm: ArmRecord) -> list[tuple[str, object]]:
    return list(dotted(arm.runs[0].config.to_dict()).items())


def _value(value: object) -> str:
    return "-" if value is None else str(value)
