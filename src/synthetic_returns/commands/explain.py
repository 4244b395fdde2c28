"""``synthetic-returns explain DATA``."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import tyro

from synthetic_returns.commands.view import show_page


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Finds out which steps of recorded episodes earned their outcome, and pays them for it.

    Fits a credit method on four fifths of the episodes and scores it on the others. Writes a folder
    with one HTML page, the redistributed rewards of every episode in the format of the data, and
    the fitted model. A stopped command goes on where it was.
    """

    data: tyro.conf.Positional[str]
    """A file of episodes (.npz, .jsonl, .parquet), a folder of them, or a Minari dataset by folder
    or id; docs/logs.md describes the formats."""
    out: Path | None = None
    """The folder to write; by default DATA-credit in the current directory."""
    method: str = "advance"
    """The credit method."""
    updates: int | None = None
    """The least number of updates; by default 4,000."""
    memory_mb: float = 1000.0
    """Upper bound of the memory for episodes."""
    seed: int = 0
    """Seed of everything random."""
    overwrite: bool = False
    """Replace the explanation of other data, or with other settings."""
    open: bool = False
    """Open the page in the browser."""
    serve: bool = False
    """Serve the page on localhost until Ctrl-C."""


def main(arguments: Sequence[str]) -> None:
    """Parses, fits, scores and writes."""
    parsed = tyro.cli(Arguments, args=list(arguments), prog="synthetic-returns explain")

    # Only now what is slow to load.
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from synthetic_returns.logs.explaining import explain_log
    from synthetic_returns.recorded.credit import Credit

    credit = Credit(
        parsed.method, updates=parsed.updates, memory_mb=parsed.memory_mb, seed=parsed.seed
    )
    name = Path(parsed.data).name.partition(".")[0]
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[str, TaskID] = {}

        def progress(stage: str, share: float) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=1.0)
                if not console.is_terminal:
                    console.print(stage)
            bar.update(tasks[stage], completed=share)

        page = explain_log(
            parsed.data,
            parsed.out or Path(f"{name}-credit"),
            credit,
            overwrite=parsed.overwrite,
            progress=progress,
        )
    print(page)
    show_page(page, open_it=parsed.open, serve=parsed.serve)
