"""``synthetic-returns compare TASK...``."""

import dataclasses
import functools
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from synthetic_returns.commands.parsing import parse_known

if TYPE_CHECKING:
    from synthetic_returns.experiments.experiment import Experiment

USAGE = """\
usage: synthetic-returns compare TASK... [OPTIONS] [ANY FLAG OF train]

Trains the same agent with each credit method on each task, on all cores, and
compares the methods: solved seeds, steps to solve, success, time and memory. To
continue an interrupted comparison, run the same command again; finished runs
are not repeated.

examples:
  synthetic-returns compare chain       all methods, 10 seeds
  synthetic-returns compare chain dense --credit none,advance,rudder --seeds 5
  synthetic-returns compare catch-delayed --agent r2d2
  synthetic-returns reproduce arena     all methods on nine tasks

  synthetic-returns compare TASK --help   all options
"""
NOT_PASSED_ON = {
    "--seed": "seeds are counted from 0: --seeds says how many",
    "--resume": "run the same command again to continue a comparison",
}


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Compares credit methods. Flags of train apply to every run."""

    credit: Annotated[str | None, tyro.conf.arg(metavar="A,B,...")] = None
    """The methods, separated by commas; by default all. With oracle among them, steps to solve
    are also shown as a multiple of the oracle's; with none, each method is compared with no
    credit."""
    seeds: int = 10
    """Seeds of each method, counted from 0."""
    steps: int | None = None
    """Environment steps of every run; by default the preset's."""
    out: Path | None = None
    """The folder; by default comparisons/TASKS. You can add tasks, methods and seeds to it. A
    folder with other settings is never overwritten."""
    train: bool = True
    """Train the missing runs; --no-train only writes the results of finished runs."""
    workers: int | None = None
    """Runs to train in parallel; by default one per core."""
    open: bool = False
    """Open the page in the browser."""


def main(arguments: Sequence[str]) -> None:
    """Parses, trains and compares."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        sys.exit(0 if arguments else 2)
    named = list(itertools.takewhile(lambda word: not word.startswith("-"), arguments))
    prog = f"synthetic-returns compare {' '.join(named) or 'TASK'} [FLAGS OF train]"
    parsed, flags = parse_known(Arguments, arguments[len(named) :], prog)
    if not named:
        raise ValueError("there is no task; begin with one or more: compare TASK...")

    # Only now what is slow to load.
    from synthetic_returns.commands.view import show_page
    from synthetic_returns.envs.registry import find_task
    from synthetic_returns.training.runs import file_name
    from synthetic_returns.utils.checks import check_positive

    check_positive("seeds", parsed.seeds)
    tasks = list(dict.fromkeys(find_task(name).name for name in named))
    out = parsed.out or Path("comparisons") / "+".join(map(file_name, tasks))
    page = compare(
        [_experiment(task, parsed, flags) for task in tasks],
        runs=out / "runs",
        out=out,
        elsewhere="--out",
        train=parsed.train,
        workers=parsed.workers,
    )
    show_page(page, open_it=parsed.open, serve=False)


def compare(
    experiments: Sequence["Experiment"],
    *,
    runs: Path,
    out: Path,
    elsewhere: str,
    train: bool = True,
    workers: int | None = None,
    tasks: Sequence[str] = (),
    methods: Sequence[str] = (),
) -> Path:
    """Trains what is missing, and writes and prints the results.

    Args:
      experiments: one for each task, with the arms of all methods.
      runs: where the run directories are.
      out: where the results go.
      elsewhere: the flag that names another place for the runs, for messages.
      train: whether anything is trained.
      workers: how many runs train in parallel; by default one per core.
      tasks: the experiments to train, by name; by default all. The results are of all that was
        trained before, too.
      methods: the methods to train; by default all.

    Returns:
      The page.
    """
    from synthetic_returns.commands.show_comparison import print_comparison
    from synthetic_returns.commands.train import configuration
    from synthetic_returns.experiments.comparison.folder import claim_results
    from synthetic_returns.experiments.comparison.plan import plan
    from synthetic_returns.experiments.comparison.run import train_comparison, write_comparison
    from synthetic_returns.experiments.earlier_runs import check_earlier_runs
    from synthetic_returns.report.comparison_page import write_comparison_page

    configure = functools.cache(configuration)
    comparison = plan(experiments, configure)
    claim_results(out, experiments)
    check_earlier_runs(comparison.experiments, runs, configure, elsewhere=elsewhere)
    if train:
        trained = train_comparison(comparison.only(tasks, methods), runs, workers=workers)
        missing = (*comparison.missing, *trained.missing)
        comparison = dataclasses.replace(comparison, missing=missing)
    compared = write_comparison(comparison, runs, out)
    page = write_comparison_page(compared, out / "comparison.html")
    print_comparison(compared, page)
    return page


def _experiment(task: str, parsed: Arguments, rest: Sequence[str]) -> "Experiment":
    """What is compared on one task."""
    from synthetic_returns.commands.train import (
        configuration,
        refuse_flags,
        split_flags,
        without_flags,
    )
    from synthetic_returns.credit.registry import find_method, method_names
    from synthetic_returns.experiments.comparison.plan import with_methods
    from synthetic_returns.experiments.experiment import Experiment
    from synthetic_returns.experiments.solving import SOLVED
    from synthetic_returns.experiments.studies.arena import TASKS
    from synthetic_returns.training.runs import file_name

    flags = split_flags(list(rest), "--preset", *NOT_PASSED_ON)
    refuse_flags(flags, "a comparison", NOT_PASSED_ON)
    # The preset's own method is the one that it was tuned for.
    config = configuration([task, *flags])
    if "success" not in config.task.event_names:
        raise ValueError(
            f"{task} does not define when an episode is a success, so it cannot be solved: "
            "train it with each --credit, and compare the runs with synthetic-returns report."
        )
    names = parsed.credit.split(",") if parsed.credit else method_names()
    methods = [find_method(name.strip()).name for name in names]
    known = {e.task: e.solved for e in TASKS if not e.flags}
    experiment = Experiment(
        name=file_name(task),
        title=task,
        task=task,
        steps=parsed.steps or config.steps,
        solved=known.get(task, SOLVED),
        flags=tuple(without_flags(flags, "--preset")),
        seeds=parsed.seeds,
        traces=0,
    )
    return with_methods(
        experiment, list(dict.fromkeys(methods)), preset=config.preset, tuned=config.credit.name
    )
