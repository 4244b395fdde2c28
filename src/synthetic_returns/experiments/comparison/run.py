"""From a comparison to its results: train what is missing, then write everything that is known."""

import dataclasses
from pathlib import Path

from synthetic_returns.experiments.comparison.advice import which_method
from synthetic_returns.experiments.comparison.cells import NOTES, markdown_table
from synthetic_returns.experiments.comparison.figures import draw_comparison
from synthetic_returns.experiments.comparison.plan import Comparison, Missing
from synthetic_returns.experiments.comparison.records import write_records
from synthetic_returns.experiments.comparison.summary import MethodSummary, overall, summarise
from synthetic_returns.experiments.outcome import Outcomes, read_outcomes
from synthetic_returns.training.jobs import claim_folder, run_jobs
from synthetic_returns.utils.files import write_atomically

__all__ = ["Compared", "train_comparison", "write_comparison"]


@dataclasses.dataclass(frozen=True)
class Compared:
    """The results of a comparison.

    Attributes:
      results: by task, the finished runs of each method.
      summaries: of each method on each task and, if there are several, on all.
      missing: methods without results, and why.
      files: what was written.
    """

    results: dict[str, Outcomes]
    summaries: list[MethodSummary]
    missing: tuple[Missing, ...]
    files: list[Path]


def train_comparison(
    comparison: Comparison, runs: Path, *, workers: int | None = None
) -> Comparison:
    """Trains all runs that have not finished yet; returns the comparison with those that failed.

    Args:
      comparison: what to do.
      runs: where the run directories are.
      workers: how many run in parallel; by default one per core.
    """
    jobs = comparison.jobs(runs)
    with claim_folder(runs, "the comparison"):
        failed = run_jobs(list(jobs), workers=workers, keep_going=True)
    missing = list(comparison.missing)
    for job, why in failed.items():
        experiment, arm = jobs[job]
        reason = f"{job.name} {why}; the same command goes on with it"
        missing.append(Missing(experiment.name, arm.name, reason))
    return dataclasses.replace(comparison, missing=tuple(missing))


def write_comparison(comparison: Comparison, runs: Path, out: Path) -> Compared:
    """Writes the tables and figures of all runs that have finished.

    Raises:
      ValueError: none has.
    """
    read = {e.name: read_outcomes(e, runs) for e in comparison.experiments}
    results = {name: outcomes for name, outcomes in read.items() if outcomes}
    if not results:
        reasons = "; ".join(dict.fromkeys(entry.reason for entry in comparison.missing))
        raise ValueError(f"no run has finished in {runs}{f' ({reasons})' if reasons else ''}.")
    summaries = summarise(results)
    files = write_records(results, summaries, comparison.missing, out)
    files += draw_comparison(results, overall(summaries), out)
    notes = "".join(f"{note}\n" for note in NOTES)
    write_atomically(out / "table.md", f"{markdown_table(summaries)}\n{notes}")
    write_atomically(out / "which-method.md", which_method([s.row() for s in summaries]))
    files += [out / "table.md", out / "which-method.md"]
    return Compared(results, summaries, comparison.missing, files)
