"""What a comparison says about each method: on one task, and over all tasks."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from synthetic_returns.experiments.outcome import Outcome, Outcomes
from synthetic_returns.utils.scores import (
    CUT,
    Scores,
    interquartile_mean,
    probability_of_improvement,
    stratified_interval,
)
from synthetic_returns.utils.tables import Row

__all__ = [
    "ALL",
    "BASELINE",
    "LIMIT",
    "Estimate",
    "MethodSummary",
    "overall",
    "success_scores",
    "summarise",
]

BASELINE, LIMIT = "none", "oracle"  # what methods are compared with
ALL = "all"  # tasks together


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number with its 95 % bootstrap interval over the seeds."""

    value: float
    low: float
    high: float

    def row(self, name: str) -> Row:
        """For CSV files."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


@dataclasses.dataclass(frozen=True)
class MethodSummary:
    """All runs of one method on one task, or on all.

    Attributes:
      task: name of the task; "all" for all together.
      method: name of the method.
      tasks: how many tasks these are.
      of_tasks: how many there are in the comparison; more, if the method cannot be used on some.
      runs: how many runs have finished.
      solved: how many of them solved the task.
      multiple: steps to solve it, as a multiple of the oracle's; interquartile mean. None if no
        run solved it, or the oracle did not.
      at_least: whether the multiple is a lower bound, because among the middle half are runs that
        did not solve the task and count with all their steps.
      success: in the final evaluation; interquartile mean.
      improvement: probability that a run has more success at the end than one without credit.
      seconds: for a million steps.
      memory_mb: at most, of any run.
    """

    task: str
    method: str
    tasks: int
    of_tasks: int
    runs: int
    solved: int
    multiple: Estimate | None
    at_least: bool
    success: Estimate
    improvement: Estimate | None
    seconds: float
    memory_mb: float

    def row(self) -> Row:
        """For CSV files."""
        unknown = Estimate(np.nan, np.nan, np.nan)
        return {
            "task": self.task,
            "method": self.method,
            "tasks": self.tasks,
            "runs": self.runs,
            "solved": self.solved,
            **(self.multiple or unknown).row("multiple_of_oracle"),
            "multiple_is_lower_bound": int(self.at_least),
            **self.success.row("success"),
            **(self.improvement or unknown).row("probability_of_improvement"),
            "seconds_per_million_steps": self.seconds,
            "peak_memory_mb": self.memory_mb,
        }


def summarise(results: Mapping[str, Outcomes]) -> list[MethodSummary]:
    """One summary for each method and task, then one for each method over all its tasks.

    Args:
      results: by task, the finished runs of each method.
    """
    methods = list(dict.fromkeys(name for outcomes in results.values() for name in outcomes))
    found = [
        _summary(task, method, {task: outcomes}, of_tasks=1)
        for task, outcomes in results.items()
        for method in methods
        if method in outcomes
    ]
    if len(results) > 1:
        for method in methods:
            # Compared with the others on its own tasks, which may not be all.
            own = {task: outcomes for task, outcomes in results.items() if method in outcomes}
            found.append(_summary(ALL, method, own, of_tasks=len(results)))
    return found


def overall(summaries: Sequence[MethodSummary]) -> list[MethodSummary]:
    """Those over all tasks; of a single task, those on it."""
    return [summary for summary in summaries if summary.task == ALL] or list(summaries)


def success_scores(results: Mapping[str, Outcomes], method: str) -> list[np.ndarray]:
    """The success at the end of every run of a method, by task; tasks without runs are left out."""
    return [
        np.array([run.summary["eval"]["success"] for run in outcomes[method]])
        for outcomes in results.values()
        if method in outcomes
    ]


def _summary(
    task: str, method: str, results: Mapping[str, Outcomes], *, of_tasks: int
) -> MethodSummary:
    runs = [outcomes[method] for outcomes in results.values()]
    every = [run for of_task in runs for run in of_task]
    success = success_scores(results, method)
    multiple, at_least = _multiple(method, results)
    return MethodSummary(
        task=task,
        method=method,
        tasks=len(runs),
        of_tasks=of_tasks,
        runs=len(every),
        solved=sum(run.solving is not None for run in every),
        multiple=multiple,
        at_least=at_least,
        success=_estimate(interquartile_mean, success),
        improvement=_improvement(method, results),
        seconds=float(np.mean([np.median([_seconds(run) for run in part]) for part in runs])),
        memory_mb=float(np.max([run.summary.get("peak_memory_mb") or np.nan for run in every])),
    )


def _multiple(method: str, results: Mapping[str, Outcomes]) -> tuple[Estimate | None, bool]:
    """Steps to solve over the oracle's, on the tasks that the oracle solves."""
    known = [
        (outcomes[method], outcomes[LIMIT])
        for outcomes in results.values()
        if LIMIT in outcomes and not _has_unsolved_middle(outcomes[LIMIT])
    ]
    ours = [run for part, _ in known for run in part]
    if not any(run.solving for run in ours):
        return None, False
    steps = [_steps_to_solve(part) for part, _ in known]
    of_oracle = [_steps_to_solve(oracle) for _, oracle in known]
    if method == LIMIT:  # of itself: 1 by definition, whatever is resampled
        return Estimate(1.0, 1.0, 1.0), False
    # On one task, runs that did not solve it have the most steps, and may be left out as such.
    unsolved = _has_unsolved_middle(ours) if len(known) == 1 else any(not r.solving for r in ours)
    return _estimate(_multiple_of, steps, of_oracle), unsolved


def _multiple_of(steps: Scores, of_oracle: Scores) -> np.ndarray:
    pairs = zip(steps, of_oracle, strict=True)
    return interquartile_mean([x / interquartile_mean([y])[..., None] for x, y in pairs])


def _improvement(method: str, results: Mapping[str, Outcomes]) -> Estimate | None:
    shared = {task: outcomes for task, outcomes in results.items() if BASELINE in outcomes}
    if not shared or method == BASELINE:
        return None
    scores, baseline = success_scores(shared, method), success_scores(shared, BASELINE)
    return _estimate(probability_of_improvement, scores, baseline)


def _estimate(statistic: Callable[..., np.ndarray], *methods: Scores) -> Estimate:
    low, high = stratified_interval(statistic, *methods)
    return Estimate(float(statistic(*methods)), float(low), float(high))


def _steps_to_solve(runs: Sequence[Outcome]) -> np.ndarray:
    """A run that did not solve the task counts with all its steps."""
    rows = [run.solving.row if run.solving else -1 for run in runs]
    return np.array([run.steps[row] for run, row in zip(runs, rows, strict=True)], float)


def _has_unsolved_middle(runs: Sequence[Outcome]) -> bool:
    """Whether more runs are unsolved than the interquartile mean leaves out at one end."""
    return sum(run.solving is None for run in runs) > int(CUT * len(runs))


def _seconds(run: Outcome) -> float:
    """Of a million steps, by the median of the rows: compiling and pauses do not count."""
    return float(1e6 / np.nanmedian(run.metrics["steps_per_s"]))
