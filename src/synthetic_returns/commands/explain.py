"""``synthetic-returns explain DATA``."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import tyro

from synthetic_returns.commands.parsing import parse
from synthetic_returns.commands.view import show_page


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Finds the steps of recorded episodes that earned the outcome, and moves the reward to them.

    Fits a credit method on four fifths of the episodes and scores it on the others. Writes a folder
    with an HTML page, the redistributed rewards of every episode in the format of the data, and the
    fitted model. To continue an interrupted command, run it again.
    """

    data: tyro.conf.Positional[str]
    """A file of episodes (.npz, .jsonl, .parquet), a folder of such files, or the folder or id of
    a Minari dataset; docs/logs.md describes the formats."""
    out: Path | None = None
    """The folder to write; by default DATA-credit in the current directory."""
    method: str = "advance"
    """The credit method."""
    updates: int | None = None
    """Smallest number of updates; by default 4,000."""
    memory_mb: float = 1000.0
    """Memory limit of the episode buffer, in MB."""
    seed: int = 0
    """Random seed."""
    overwrite: bool = False
    """Overwrite a folder that was made from other data or with other settings."""
    open: bool = False
    """Open the page in the browser."""
    serve: bool = False
    """Serve the page on localhost until Ctrl-C."""


def main(arguments: Sequence[str]) -> None:
    """Parses, fits, scores and writes."""
    parsed = parse(Arguments, arguments, "synthetic-returns explain")

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
