"""``synthetic-returns demo``."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import tyro


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Trains delayed Catch with and without synthetic returns, side by side, and draws both.

    Takes a few minutes on two cores. After an interruption it goes on where it stopped.
    """

    root: Path = Path("runs")
    """Where the folder demo-NNN is made."""


def main(arguments: Sequence[str]) -> None:
    """Parses, trains and draws."""
    parsed = tyro.cli(Arguments, args=list(arguments), prog="synthetic-returns demo")

    # Only now what is slow to load.
    from synthetic_returns.commands.show_results import print_results
    from synthetic_returns.experiments.run import reproduce
    from synthetic_returns.experiments.studies.demo import STUDY, demo_folder

    folder = demo_folder(parsed.root)
    print_results(folder, reproduce([STUDY], runs=folder / "runs", out=folder))
