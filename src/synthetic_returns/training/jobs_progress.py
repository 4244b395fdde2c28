"""What a person sees of many training runs at once."""

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from synthetic_returns.training.job import Job
from synthetic_returns.training.progress import describe

__all__ = ["JobsProgress"]

WIDE = 110  # columns of a terminal that has room for all numbers


class JobsProgress:
    """A bar for all jobs and one for each that runs; a line for each that has finished."""

    def __init__(self, total: int, *, over: int = 0):
        """Prepares the display.

        Args:
          total: how many jobs.
          over: how many of these were over before, and will not be shown.
        """
        self._total, self._earlier = total, over
        self._console = Console(stderr=True)
        self._is_narrow = self._console.width < WIDE
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=10 if self._is_narrow else 24),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[numbers]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._all = self._bars.add_task(
            "all", total=total, completed=over, numbers="", visible=total > 1
        )
        # A bar is made once its job runs: there may be more jobs than lines on the terminal.
        self._tasks: dict[Job, TaskID] = {}
        self._over: set[Job] = set()

    def __enter__(self) -> "JobsProgress":
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def refresh(self, jobs: Sequence[Job]) -> None:
        """Shows how far some jobs are."""
        for job in jobs:
            if job not in self._tasks:
                self._tasks[job] = self._bars.add_task(job.name, total=job.steps, numbers="")
            row = job.newest_row()
            if row is None:
                continue
            steps = min(job.steps, int(row["env_steps"]))
            self._bars.update(
                self._tasks[job], completed=steps, numbers=describe(row, brief=self._is_narrow)
            )
            if job.finished:
                self.end(job, f"finished  {describe(row)}")

    def end(self, job: Job, how: str) -> None:
        """Shows that a job is over, once."""
        if job in self._over:
            return
        self._over.add(job)
        if job in self._tasks:
            self._bars.update(self._tasks[job], visible=False)
        self._bars.advance(self._all)
        self._bars.update(self._all, numbers=f"{self._earlier + len(self._over)} of {self._total}")
        self._console.print(f"{job.name}  {how}", soft_wrap=True)
