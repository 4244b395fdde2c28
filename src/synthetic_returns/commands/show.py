"""How results look on the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Column, Table

from synthetic_returns.training.runs import Run

__all__ = ["print_summaries"]


def print_summaries(runs: Sequence[Run]) -> None:
    """One row per finished run."""
    table = Table(
        Column("run", overflow="fold"),
        "seed",
        "steps",
        "wall s",
        "steps/s",
        "return",
        "95 %",
        "success",
    )
    for run in runs:
        summary = run.summary()
        result = summary["eval"]
        table.add_row(
            str(run.path),
            str(summary["seed"]),
            f"{summary['env_steps']:,}",
            f"{summary['wall_s']:.0f}",
            f"{summary['steps_per_s']:,.0f}",
            f"{result['return_mean']:.2f}",
            f"{result['return_low']:.2f} .. {result['return_high']:.2f}",
            f"{result['success']:.3f}" if "success" in result else "-",  # not every task says
        )
    Console().print(table)
