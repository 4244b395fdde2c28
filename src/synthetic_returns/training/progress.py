"""What a person sees of a long run: a live bar on a terminal, a few plain lines elsewhere."""

import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

__all__ = ["TrainingProgress", "describe"]

QUIET_LINES = 10  # lines of a whole run when there is no terminal


def describe(row: dict[str, float], *, brief: bool = False) -> str:
    """The numbers that matter of a row of metrics, on one line.

    Args:
      row: the metrics.
      brief: only the one that matters most: success, or the return where it is not known.
    """
    shown = {"rate": f"{row['steps_per_s']:,.0f} steps/s"}
    for name, label in (
        ("episode_return", "return"),
        ("success", "success"),
        ("credit/explained_variance", "explained"),
    ):
        if name in row and row[name] == row[name]:
            shown[label] = f"{label} {row[name]:.2f}"
    if brief:
        return next((shown[label] for label in ("success", "return") if label in shown), "")
    return "  ".join(shown.values())


class TrainingProgress:
    """Follows one run; use it as a context manager and call it after every row of metrics."""

    def __init__(self, name: str, total: int, console: Console | None = None):
        """Prepares the display.

        Args:
          name: what is shown beside the bar.
          total: steps of the whole run.
          console: where to print; by default standard error.
        """
        self._name, self._total = name, total
        self._console = console or Console(stderr=True)
        self._printed = -1
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[numbers]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(name, total=total, numbers="compiling ...")

    def __call__(self, step: int, row: dict[str, float]) -> None:
        """Shows the newest row."""
        numbers = describe(row)
        if self._console.is_terminal:
            self._bar.update(self._task, completed=min(step, self._total), numbers=numbers)
            return
        line = step * QUIET_LINES // self._total
        if line > self._printed:
            self._printed = line
            print(f"{self._name}  step {step:,} of {self._total:,}  {numbers}",
                  file=sys.stderr, flush=True)  # fmt: skip

    def __enter__(self) -> "TrainingProgress":
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()
