"""Many training runs at once: one process per run, as many side by side as there are cores."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from synthetic_returns.metrics import read_metrics
from synthetic_returns.progress import describe
from synthetic_returns.runs import Run, RunError

__all__ = ["Job", "JobFailed", "run_jobs"]

POLL_SECONDS = 0.5


class JobFailed(RuntimeError):
    """A training process ended with an error."""


@dataclasses.dataclass(frozen=True)
class Job:
    """One run: what to train, and where.

    Attributes:
      name: what is shown beside its bar.
      arguments: of ``synthetic-returns train``, without --out and --resume.
      out: the run directory.
      steps: environment steps of the whole run.
    """

    name: str
    arguments: tuple[str, ...]
    out: Path
    steps: int

    @property
    def finished(self) -> bool:
        """Whether it has left its result, and that of as many steps."""
        try:
            return Run.open(self.out).summary()["env_steps"] >= self.steps
        except (OSError, RunError):
            return False

    @property
    def log(self) -> Path:
        """What its process prints."""
        return self.out.with_name(f"{self.out.name}.log")

    def command(self) -> list[str]:
        """The command line; it goes on where an earlier attempt stopped."""
        program = [sys.executable, "-m", "synthetic_returns", "train"]
        return [*program, *self.arguments, "--resume", str(self.out), "--quiet"]


def run_jobs(jobs: Sequence[Job], *, workers: int | None = None) -> None:
    """Runs all jobs that have not finished yet, one core each, with one progress view.

    Raises:
      JobFailed: a job ended with an error; the others are stopped first, and can be resumed.
    """
    cores = sorted(os.sched_getaffinity(0))
    workers = min(workers or len(cores), len(cores))
    waiting = [job for job in jobs if not job.finished]
    environment = _environment(jobs) | os.environ
    running: dict[int, tuple[Job, subprocess.Popen]] = {}
    with _JobsProgress(jobs) as progress, _terminable():
        try:
            while waiting or running:
                for core in cores[:workers]:
                    if core not in running and waiting:
                        job = waiting.pop(0)
                        running[core] = (job, _start(job, core, environment))
                time.sleep(POLL_SECONDS)
                progress.refresh([job for job, _ in running.values()])
                for core, (job, process) in list(running.items()):
                    if process.poll() is not None:
                        del running[core]
                        _check(job, process)
                        progress.refresh([job])
        finally:
            for _, process in running.values():
                process.terminate()
            for _, process in running.values():
                process.wait()


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Makes SIGTERM an exception, so that no job outlives this process."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may catch signals
        return
    previous = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _environment(jobs: Sequence[Job]) -> dict[str, str]:
    """Lets the runs share compiled code: seeds differ in nothing that is compiled."""
    if not jobs:
        return {}
    folder = os.path.commonpath([job.out.parent.absolute() for job in jobs])
    return {
        "JAX_COMPILATION_CACHE_DIR": os.path.join(folder, ".compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }


def _start(job: Job, core: int, environment: Mapping[str, str]) -> subprocess.Popen:
    job.out.parent.mkdir(parents=True, exist_ok=True)
    with job.log.open("ab") as log:
        process = subprocess.Popen(job.command(), stdout=log, stderr=log, env=environment)
    # A process of its own core needs no thread pool; two that share both cores slow each other.
    os.sched_setaffinity(process.pid, {core})
    return process


def _check(job: Job, process: subprocess.Popen) -> None:
    if process.returncode != 0:
        tail = "\n".join(job.log.read_text(errors="replace").splitlines()[-15:])
        raise JobFailed(
            f"{job.name} ended with code {process.returncode}; its last words ({job.log}):\n{tail}"
        )


class _JobsProgress:
    """A bar for all jobs and one for each that runs; a line for each that has finished."""

    def __init__(self, jobs: Sequence[Job]):
        self._console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[numbers]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._all = self._bars.add_task("all", total=len(jobs), numbers="", visible=len(jobs) > 1)
        # A bar is shown once its job runs: there may be more jobs than lines on the terminal.
        self._tasks = {
            job: self._bars.add_task(
                job.name, total=job.steps, numbers="", start=False, visible=False
            )
            for job in jobs
        }
        self._reported: set[Job] = set()

    def __enter__(self) -> "_JobsProgress":
        self._bars.start()
        self.refresh([job for job in self._tasks if job.finished])
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def refresh(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            task = self._tasks[job]
            self._bars.start_task(task)
            self._bars.update(task, visible=True)
            try:
                columns = read_metrics(job.out / "metrics.csv")
            except (OSError, RunError):
                continue  # not written yet
            if not len(columns["env_steps"]):
                continue
            row = {name: float(column[-1]) for name, column in columns.items()}
            steps = min(job.steps, int(row["env_steps"]))
            self._bars.update(task, completed=steps, numbers=describe(row))
            if job.finished and job not in self._reported:
                self._reported.add(job)
                self._bars.update(task, visible=False)
                self._bars.advance(self._all)
                self._bars.update(self._all, numbers=f"{len(self._reported)} of {len(self._tasks)}")
                self._console.print(f"{job.name}  finished  {describe(row)}", soft_wrap=True)
