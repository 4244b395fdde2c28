"""``synthetic-returns report RUN...``."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from synthetic_returns.commands.parsing import parse
from synthetic_returns.commands.view import show_page


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Writes one HTML page about one or many runs.

    The page has the learning curves of every seed with their mean and its interval, the steps to
    solve beside the paper's number, throughput, the diagnostics of the credit method, settings and
    commands. Because a picture can flatter, it also measures the credit on 100 episodes.
    """

    runs: Annotated[
        tyro.conf.Positional[tuple[Path, ...]],
        tyro.conf.arg(metavar="RUN...", help_behavior_hint="(required)"),
    ]
    """Run directories, or folders of them."""
    out: Path | None = None
    """The HTML file; by default report.html in the run or folder, or in the current directory
    if you name several."""
    open: bool = False
    """Open the page in the browser."""
    serve: bool = False
    """Serve the page on localhost until Ctrl-C."""


def main(arguments: Sequence[str]) -> None:
    """Parses, measures and writes."""
    parsed = parse(Arguments, arguments, "synthetic-returns report")
    if not parsed.runs:
        raise ValueError("there is no run to report on; name run directories: report RUN...")
    folder = parsed.runs[0] if len(parsed.runs) == 1 else Path()
    page = report(parsed.runs, parsed.out or folder / "report.html")
    show_page(page, open_it=parsed.open, serve=parsed.serve)


def report(runs: Sequence[Path], out: Path) -> Path:
    """Measures the credit, prints it, and writes the page."""
    # Only now what is slow to load.
    from synthetic_returns.report.report import measure, read_records, write_report

    records = read_records(runs)
    measured = measure(records)
    for record, quality in measured:
        print(f"{record.opened.path}: {quality}")
    page = write_report(records, measured, out)
    print(page)
    return page
