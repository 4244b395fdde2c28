"""``synthetic-returns demo``."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from synthetic_returns.commands.parsing import parse


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Trains delayed Catch with and without synthetic returns, side by side, and draws both.

    This takes about two minutes on two cores. To continue an interrupted demo, run it again.
    """

    root: Path = Path("runs")
    """Where to create the folder demo-NNN."""


def main(arguments: Sequence[str]) -> None:
    """Parses, trains and draws."""
    parsed = parse(Arguments, arguments, "synthetic-returns demo")

    # Only now what is slow to load.
    from synthetic_returns.commands.show_results import print_results
    from synthetic_returns.experiments.outcome import read_outcomes
    from synthetic_returns.experiments.run import reproduce
    from synthetic_returns.experiments.studies.demo import DEMO, STUDY, credited_run, demo_folder

    folder = demo_folder(parsed.root)
    figures = reproduce([STUDY], runs=folder / "runs", out=folder)
    print_results(folder, figures)
    run = credited_run(read_outcomes(DEMO, folder / "runs")).path
    print(f"\nLook at the picture: {figures[0]}")
    print("Then watch the agent play, with the credit of each step:")
    print(f"  synthetic-returns view {run} --open")
