"""How the results of experiments look on the terminal."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from synthetic_returns.experiments.catalog import EXPERIMENTS
from synthetic_returns.experiments.table import HEADER, arm_rows
from synthetic_returns.utils.tables import read_csv

__all__ = ["print_results"]

REQUIRED = HEADER.index("required")  # too long for a column


def print_results(out: Path, figures: Sequence[Path]) -> None:
    """The table of a folder of results, what was required of them, and where everything is."""
    console = Console()
    rows = arm_rows(read_csv(out / "summary.csv"), EXPERIMENTS)
    shown = [i for i in range(len(HEADER)) if i != REQUIRED and any(row[i] for row in rows)]
    table = Table(*(HEADER[i] for i in shown))
    for row in rows:
        table.add_row(*(row[i] for i in shown))
    console.print(table)
    for experiment, arm, *rest in rows:
        if required := rest[REQUIRED - 2]:
            console.print(f"{experiment} {arm}: {required}", soft_wrap=True)
    for path in (out / "summary.csv", out / "table.md", *figures):
        console.print(str(path), soft_wrap=True)
