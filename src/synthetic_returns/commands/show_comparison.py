"""How a comparison looks on the terminal."""

from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from synthetic_returns.experiments.comparison.cells import NOTES, ranked, short_cells
from synthetic_returns.experiments.comparison.run import Compared
from synthetic_returns.experiments.comparison.summary import ALL

__all__ = ["print_comparison"]

TITLES = ("method", "solved", "steps / oracle's", "success at end", "> none", "s/1M", "MB")


def print_comparison(compared: Compared, page: Path) -> None:
    """A table for each task, what there is no result of, and where everything is."""
    console = Console()
    tasks = dict.fromkeys(summary.task for summary in compared.summaries)
    for task in tasks:
        table = Table(
            *(Column(title, justify="left" if title == "method" else "right") for title in TITLES),
            title=f"all {len(compared.results)} tasks" if task == ALL else task,
            title_justify="left",
            box=None,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )  # fmt: skip
        for summary in ranked(compared.summaries, task):
            table.add_row(*short_cells(summary))
        console.print(table)
        console.print()
    for note in NOTES:
        console.print(note, highlight=False)
    for entry in compared.missing:
        console.print(f"{entry.task} {entry.method}: {entry.reason}", soft_wrap=True)
    for path in (*compared.files, page):
        console.print(str(path), soft_wrap=True)
