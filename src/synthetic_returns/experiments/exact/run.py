"""All methods on all small tasks, resumable: one process trains all seeds of a method on a task."""

import dataclasses
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from synthetic_returns.engines.credit import check_credit
from synthetic_returns.experiments.exact.probe import probed
from synthetic_returns.experiments.exact.tasks import POLICIES, Policy, SmallTask
from synthetic_returns.training.jobs import claim_folder
from synthetic_returns.utils.cores import pin, usable_cores
from synthetic_returns.utils.suggestions import chosen_names
from synthetic_returns.utils.tables import Row, read_csv, write_csv

__all__ = ["Cell", "ExactStudy", "train_exact"]


@dataclasses.dataclass(frozen=True)
class Cell:
    """All seeds of a method on a task."""

    task: SmallTask
    method: str
    seeds: int

    def paths(self, runs: Path) -> dict[tuple[Policy, int], Path]:
        """The file of each run."""
        folder = runs / self.task.name
        return {
            (policy, seed): folder / f"{self.method}-{policy}-seed{seed}.csv"
            for policy in POLICIES
            for seed in range(self.seeds)
        }

    def refusal(self) -> str:
        """Why the method cannot be used on the task; empty if it can."""
        try:
            check_credit(self.task.config(self.method, "learning", 0))
        except ValueError as error:
            return str(error)
        return ""

    def train(self, runs: Path) -> None:
        """Trains what is missing."""
        for (policy, seed), path in self.paths(runs).items():
            if not path.exists():
                write_csv(path, probed(self.task, self.method, policy, seed))


@dataclasses.dataclass(frozen=True)
class ExactStudy:
    """What is compared.

    Attributes:
      tasks: the small tasks.
      methods: names of the methods.
      seeds: how many, from 0.
    """

    tasks: tuple[SmallTask, ...]
    methods: tuple[str, ...]
    seeds: int

    def only(self, tasks: Sequence[str], methods: Sequence[str]) -> "ExactStudy":
        """A part of it; where no names are given, all."""
        chosen = chosen_names("task", tasks, [task.name for task in self.tasks])
        return dataclasses.replace(
            self,
            tasks=tuple(task for task in self.tasks if task.name in chosen),
            methods=tuple(chosen_names("method", methods, self.methods)),
        )

    @property
    def cells(self) -> list[Cell]:
        """Every method on every task."""
        return [Cell(task, method, self.seeds) for task in self.tasks for method in self.methods]

    def rows(self, runs: Path) -> list[Row]:
        """The rows of all runs that have finished."""
        paths = [path for cell in self.cells for path in cell.paths(runs).values()]
        return [row for path in paths for row in read_csv(path)]


def train_exact(cells: Sequence[Cell], runs: Path) -> Iterator[tuple[Cell, str]]:
    """Trains what is missing, a process for each core.

    Yields:
      Each cell as it is done, and why it could not be used, if so.
    """
    waiting = []
    for cell in cells:
        if why := cell.refusal():
            yield cell, why
        else:
            waiting.append(cell)
    cores = usable_cores()
    with claim_folder(runs, "the comparison"):
        # What JAX has begun in this process cannot go on in a copy of it.
        context = multiprocessing.get_context("spawn")
        free = context.SimpleQueue()
        for core in cores:
            free.put(core)
        with ProcessPoolExecutor(len(cores), context, _take_core, (free,)) as pool:
            done = {pool.submit(cell.train, runs): cell for cell in waiting}
            for future in as_completed(done):
                future.result()
                yield done[future], ""


def _take_core(free: Any) -> None:
    """Processes with a core of their own do not slow each other down."""
    pin(os.getpid(), free.get())
