"""How results look on the terminal."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from synthetic_returns.training.runs import Run
from synthetic_returns.utils.listing import Listing, print_listing

__all__ = ["print_next", "print_summaries"]

NUMBERS = ("seed", "steps", "wall s", "steps/s", "return", "95 %", "success")


def print_summaries(runs: Sequence[Run]) -> None:
    """One row per finished run."""
    rows = []
    for run in runs:
        summary = run.summary()
        result = summary["eval"]
        rows.append(
            (
                str(run.path),
                str(summary["seed"]),
                f"{summary['env_steps']:,}",
                f"{summary['wall_s']:.0f}",
                f"{summary['steps_per_s']:,.0f}",
                f"{result['return_mean']:.2f}",
                f"{result['return_low']:.2f} .. {result['return_high']:.2f}",
                f"{result['success']:.3f}" if "success" in result else "-",  # not every task says
            )
        )
    print_listing(Listing(("run", *NUMBERS), rows, frozenset(NUMBERS)))


def print_next(runs: Sequence[Run]) -> None:
    """What a person types next, on standard error: it is not part of the result."""
    first = runs[0].path
    together: Path = first if len(runs) == 1 else first.parent
    commands = {
        f"view {_quoted(first)} --open": "watch the agent play",
        f"evaluate {_quoted(first)}": "play more episodes",
        f"report {_quoted(together)}": "learning curves and diagnostics",
    }
    print("\nnext:", file=sys.stderr)
    width = max(map(len, commands))
    for command, purpose in commands.items():
        print(f"  synthetic-returns {command:<{width}}  # {purpose}", file=sys.stderr)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
