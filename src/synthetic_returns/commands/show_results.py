"""How the results of experiments look on the terminal."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from synthetic_returns.reproduction.records import read_csv
from synthetic_returns.reproduction.studies import EXPERIMENTS
from synthetic_returns.reproduction.table import HEADER, arm_rows

__all__ = ["print_results"]


def print_results(out: Path, figures: Sequence[Path]) -> None:
    """The table of a folder of results, and where everything is."""
    console = Console()
    table = Table(*HEADER)
    for row in arm_rows(read_csv(out / "summary.csv"), EXPERIMENTS):
        table.add_row(*row)
    console.print(table)
    for path in (out / "summary.csv", out / "table.md", *figures):
        console.print(str(path), soft_wrap=True)
