"""``synthetic-returns runs``."""

import dataclasses
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import tyro

from synthetic_returns.commands.parsing import parse
from synthetic_returns.utils.listing import Listing, print_listing


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Lists the runs in a folder and below it, newest first: status, score, steps and size.

    The score is the mean return of the final evaluation or, if a run has not finished, the latest
    one in training. When the list is piped, its fields are separated by tabs.
    """

    folder: tyro.conf.Positional[Path] = Path("runs")
    """The folder of the runs."""


def main(arguments: Sequence[str]) -> None:
    """Lists."""
    parsed = parse(Arguments, arguments, "synthetic-returns runs")

    from synthetic_returns.training.listing import find_listed

    runs = find_listed(parsed.folder)
    if not runs:
        text = f"there is no run in {parsed.folder}; train one: synthetic-returns train TASK"
        print(text, file=sys.stderr)
    rows = [
        (
            run.path.relative_to(parsed.folder).as_posix(),
            run.status,
            "-" if math.isnan(run.score) else f"{run.score:.2f}",
            f"{run.steps:,}",
            _size(run.size),
            run.note,
        )
        for run in runs
    ]
    header = ("run", "status", "score", "steps", "size", "note")
    print_listing(Listing(header, rows, frozenset({"score", "steps", "size"}), below="note"))


def _size(size: int) -> str:
    units = {"B": 1, "kB": 1000, "MB": 1000**2}
    for unit, one in units.items():
        if size < 1000 * one:
            return f"{size / one:.0f} {unit}"
    return f"{size / 1000**3:.1f} GB"
