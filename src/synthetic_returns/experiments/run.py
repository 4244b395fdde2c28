"""From studies to results: train what is missing, then write CSV files, figures and the table."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

from synthetic_returns.experiments.catalog import EXPERIMENTS
from synthetic_returns.experiments.experiment import unique_jobs
from synthetic_returns.experiments.figures.style import STYLE
from synthetic_returns.experiments.outcome import Outcomes, read_outcomes, read_recorded
from synthetic_returns.experiments.records import update_summary, write_curve, write_traces
from synthetic_returns.experiments.study import Results, Study
from synthetic_returns.experiments.table import markdown_table
from synthetic_returns.training.jobs import run_jobs
from synthetic_returns.utils.files import write_atomically
from synthetic_returns.utils.tables import Row

__all__ = ["reproduce", "write_results"]


def reproduce(studies: Sequence[Study], *, runs: Path, out: Path) -> list[Path]:
    """Trains all runs that have not finished yet, one core each, and writes the results.

    Args:
      studies: what to do.
      runs: where the run directories are; large, and only needed to go on.
      out: where the results go.

    Returns:
      The figures.
    """
    run_jobs(unique_jobs([e for study in studies for e in study.experiments], runs))
    return write_results(studies, runs=runs, out=out)


def write_results(studies: Sequence[Study], *, runs: Path, out: Path) -> list[Path]:
    """Writes the results of finished runs; see ``reproduce``."""
    rows: list[Row] = []
    figures: list[Path] = []
    for study in studies:
        for experiment in study.experiments:
            rows += _write_experiment(read_outcomes(experiment, runs), out / experiment.name)
        results: Results = {}
        for experiment in (*study.experiments, *study.also):
            recorded = read_recorded(experiment, out / experiment.name) if study.curves_only else {}
            if outcomes := recorded | read_outcomes(experiment, runs):
                results[experiment.name] = outcomes
        with matplotlib.rc_context(STYLE):
            figures += study.draw(results, out)
    summary = update_summary(out / "summary.csv", rows)
    write_atomically(out / "table.md", markdown_table(summary, EXPERIMENTS))
    return figures


def _write_experiment(outcomes: Outcomes, folder: Path) -> list[Row]:
    for runs in outcomes.values():
        for outcome in runs:
            write_curve(outcome, folder)
        if runs[0].config["credit"]["name"] != "none":
            # One seed is enough to look at: its episodes are what the figures show.
            name = f"{runs[0].arm.name}-seed{runs[0].seed}-traces"
            write_traces(folder / f"{name}.csv", runs[0].example_traces())
            if exploring := runs[0].example_traces("exploring"):
                write_traces(folder / f"{name}-exploring.csv", exploring)
    return [outcome.row() for runs in outcomes.values() for outcome in runs]
