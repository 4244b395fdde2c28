"""The results of a comparison as CSV files, from which everything can be drawn."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from synthetic_returns.experiments.comparison.plan import Missing
from synthetic_returns.experiments.comparison.summary import MethodSummary, success_scores
from synthetic_returns.experiments.outcome import Outcomes
from synthetic_returns.utils.scores import performance_profile, stratified_interval
from synthetic_returns.utils.statistics import align_curves
from synthetic_returns.utils.tables import Row, write_csv

__all__ = ["THRESHOLDS", "profiles", "write_records"]

THRESHOLDS = np.linspace(0, 1, 101)
POINTS = 50  # of a learning curve


def write_records(
    results: Mapping[str, Outcomes],
    summaries: Sequence[MethodSummary],
    missing: Sequence[Missing],
    out: Path,
) -> list[Path]:
    """Writes table.csv, runs.csv, curves.csv, profiles.csv and missing.csv; returns their paths.

    Args:
      results: by task, the finished runs of each method.
      summaries: of these.
      missing: methods without a result, and why.
      out: the folder.
    """
    tables: dict[str, list[Row]] = {
        "table": [summary.row() for summary in summaries],
        "runs": [
            _run(task, run.row(), run.summary)
            for task, outcomes in results.items()
            for runs in outcomes.values()
            for run in runs
        ],
        "curves": [row for task, outcomes in results.items() for row in _curves(task, outcomes)],
        "profiles": profiles(results),
        "missing": [dataclasses.asdict(entry) for entry in missing],
    }
    written = []
    for name, rows in tables.items():
        path = out / f"{name}.csv"
        path.unlink(missing_ok=True)  # what was missing before may be there now
        if rows:
            write_csv(path, rows)
            written.append(path)
    return written


def profiles(results: Mapping[str, Outcomes]) -> list[Row]:
    """The share of the runs of each method that have more success at the end than a threshold.

    With the 95 % interval over the seeds of each task.
    """
    methods = dict.fromkeys(name for outcomes in results.values() for name in outcomes)
    rows: list[Row] = []
    for method in methods:
        scores = success_scores(results, method)
        share = performance_profile(scores, THRESHOLDS)
        low, high = stratified_interval(lambda x: performance_profile(x, THRESHOLDS), scores)
        rows += [
            {"method": method, "success": t, "share": x, "share_low": a, "share_high": b}
            for t, x, a, b in zip(THRESHOLDS, share, low, high, strict=True)
        ]
    return rows


def _run(task: str, row: Row, summary: Row) -> Row:
    """The row of a run, with the words of this comparison."""
    named = {"task": task, "method": row["arm"]}
    rest = {name: value for name, value in row.items() if name not in ("experiment", "arm")}
    return named | rest | {"peak_memory_mb": summary.get("peak_memory_mb")}


def _curves(task: str, outcomes: Outcomes) -> list[Row]:
    """Smoothed success over training, a column for each seed."""
    rows: list[Row] = []
    for method, finished in outcomes.items():
        runs = [run for run in finished if np.isfinite(run.metrics["success"]).any()]
        grid, values = align_curves([(run.steps, run.curve("success")) for run in runs], POINTS)
        rows += [
            {"task": task, "method": method, "env_steps": round(steps)}
            | {f"seed_{run.seed}": x for run, x in zip(runs, column, strict=True)}
            for steps, column in zip(grid, values.T, strict=True)
        ]
    return rows
