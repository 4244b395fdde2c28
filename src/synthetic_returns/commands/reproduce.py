"""``synthetic-returns reproduce [STUDY]``."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import tyro

from synthetic_returns.commands.parsing import parse


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Runs the paper's experiments on all cores and draws its figures; continues stopped runs.

    Studies: chain, catch, key-to-door, or all for these three. Further studies of the default
    method: untuned (one setting for all tasks), ladder (harder tasks), unharmed (Catch with rewards
    at once), seeds (20 seeds), parts (ablation) and stability (two million more steps, also of the
    method episodic). Others: ablation (of episodic); impala (the paper's settings on the Chain);
    paper (the same on delayed Catch and Key-to-Door); anchors (beside what others published); exact
    (the credit of every method beside the exact one, on small tasks); arena (every credit method on
    nine tasks; hours); skiing and pong (Atari, needs the extra [atari]; hours).
    """

    study: tyro.conf.Positional[str] = "all"
    """The study to reproduce."""
    seeds: int | None = None
    """Seeds of every arm; by default each study's own number, mostly 4."""
    only: tuple[str, ...] = ()
    """Experiments of the study to run, by name; all by default. Their figure also shows the others
    that have been run. For exact and arena: tasks."""
    arms: tuple[str, ...] = ()
    """Arms to run, by name, such as advance; all by default. The others keep their record, and
    figures show it. For studies that draw nothing but learning curves. For exact and arena:
    methods."""
    quick: bool = False
    """Two seeds, smaller budgets, the main figures only: minutes instead of hours."""
    out: Path | None = None
    """Where to write CSV files, figures and the table; by default results/ or results-quick/."""
    runs: Path | None = None
    """Where the run directories are; by default runs/reproduce or runs/reproduce-quick."""


def main(arguments: Sequence[str]) -> None:
    """Parses, trains and draws."""
    parsed = parse(Arguments, arguments, "synthetic-returns reproduce")

    # Only now what is slow to load.
    from synthetic_returns.commands.report import report
    from synthetic_returns.commands.show_results import print_results
    from synthetic_returns.commands.train import configuration
    from synthetic_returns.experiments.catalog import ARENA, EXACT, find_studies
    from synthetic_returns.experiments.earlier_runs import check_earlier_runs
    from synthetic_returns.experiments.experiment import unique_jobs
    from synthetic_returns.experiments.run import reproduce
    from synthetic_returns.experiments.study import chosen, with_arms
    from synthetic_returns.utils.checks import check_positive

    suffix = "-quick" if parsed.quick else ""
    out = parsed.out or Path(f"results{suffix}")
    runs = parsed.runs or Path(f"runs/reproduce{suffix}")
    if parsed.seeds is not None:
        check_positive("seeds", parsed.seeds)
    if parsed.study == ARENA:
        from synthetic_returns.commands.compare import compare
        from synthetic_returns.experiments.studies.arena import arena

        grid = arena(quick=parsed.quick, seeds=parsed.seeds)
        compare(
            grid,
            runs=runs / ARENA,
            out=out / ARENA,
            elsewhere="--runs",
            tasks=parsed.only,
            methods=parsed.arms,
        )
        return
    if parsed.study == EXACT:
        _reproduce_exact(parsed, runs / EXACT, out / EXACT)
        return
    studies = find_studies(parsed.study)
    if parsed.only:
        studies = chosen(studies, parsed.only)
    if parsed.arms:
        studies = with_arms(studies, parsed.arms)
    if parsed.quick:
        studies = [study.quick() for study in studies]
        if not any(study.experiments for study in studies):
            raise ValueError(f"the study {parsed.study!r} has no quick version; leave out --quick.")
    if parsed.seeds is not None:
        studies = [study.with_seeds(parsed.seeds) for study in studies]
    experiments = [e for study in studies for e in study.experiments]
    check_earlier_runs(experiments, runs, configuration, elsewhere="--runs")
    print_results(out, reproduce(studies, runs=runs, out=out))
    report([job.out for job in unique_jobs(experiments, runs)], out / "report.html")


def _reproduce_exact(parsed: Arguments, runs: Path, out: Path) -> None:
    """Compares credit with the exact one."""
    from synthetic_returns.experiments.exact.results import write_exact
    from synthetic_returns.experiments.exact.run import train_exact
    from synthetic_returns.experiments.studies.exact import exact

    study = exact(quick=parsed.quick, seeds=parsed.seeds)
    cells = study.only(parsed.only, parsed.arms).cells
    for number, (cell, refusal) in enumerate(train_exact(cells, runs), start=1):
        print(f"{number} of {len(cells)}: {cell.task.name} {cell.method} {refusal}".rstrip())
    for path in write_exact(study, runs, out):
        print(path)
