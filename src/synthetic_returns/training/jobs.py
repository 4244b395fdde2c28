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
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from synthetic_returns.training.metrics import read_metrics
from synthetic_returns.training.progress import describe
from synthetic_returns.training.runs import Run, RunError
from synthetic_returns.utils.cores import pin, usable_cores

__all__ = [
    "Job",
    "JobFailed",
    "JobsProgress",
    "Workers",
    "check_ended",
    "end_with_parent",
    "run_jobs",
]

POLL_SECONDS = 0.5
PARENT_SECONDS = 1.0
_PARENT = "SYNTHETIC_RETURNS_PARENT"  # the process that a job belongs to


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

    def newest_row(self) -> dict[str, float] | None:
        """Its newest metrics, if there are any yet."""
        try:
            columns = read_metrics(self.out / "metrics.csv")
        except (OSError, RunError):
            return None  # not written yet
        if not len(columns["env_steps"]):
            return None
        return {name: float(column[-1]) for name, column in columns.items()}

    @property
    def log(self) -> Path:
        """What its process prints."""
        return self.out.with_name(f"{self.out.name}.log")

    def command(self) -> list[str]:
        """The command line; it goes on where an earlier attempt stopped."""
        program = [sys.executable, "-m", "synthetic_returns", "train"]
        return [*program, *self.arguments, "--resume", str(self.out), "--quiet"]

    def last_words(self, lines: int) -> list[str]:
        """The end of what its process printed."""
        return self.log.read_text(errors="replace").splitlines()[-lines:]


def run_jobs(jobs: Sequence[Job], *, workers: int | None = None) -> None:
    """Runs all jobs that have not finished yet, one core each, with one progress view.

    Raises:
      JobFailed: a job ended with an error; the others are stopped first, and can be resumed.
    """
    if not jobs:
        return
    waiting = [job for job in jobs if not job.finished]
    folder = Path(os.path.commonpath([job.out.parent.absolute() for job in jobs]))
    with JobsProgress(len(jobs)) as progress, Workers(folder, workers) as pool:
        progress.refresh([job for job in jobs if job not in waiting])
        while waiting or pool.running:
            while waiting and pool.idle:
                pool.start(waiting.pop(0))
            time.sleep(POLL_SECONDS)
            progress.refresh(pool.running)
            for job, code in pool.ended():
                check_ended(job, code)
                progress.refresh([job])


class Workers:
    """Processes that work on jobs, one core each; none outlives the context of this object."""

    def __init__(self, folder: Path, workers: int | None = None):
        """Prepares as many workers as there are cores.

        Args:
          folder: above the run directories of all jobs; what they compile is shared there.
          workers: fewer than there are cores, if given.
        """
        cores = usable_cores()
        self._cores = cores[: workers or len(cores)]
        self._environment = _environment(folder) | os.environ
        self._processes: dict[int, tuple[Job, subprocess.Popen]] = {}
        self._stack = contextlib.ExitStack()

    @property
    def idle(self) -> int:
        """How many have nothing to do."""
        return len(self._cores) - len(self._processes)

    @property
    def running(self) -> list[Job]:
        """What the others work on."""
        return [job for job, _ in self._processes.values()]

    def start(self, job: Job) -> None:
        """Gives a job to an idle worker; it goes on where an earlier attempt stopped."""
        core = next(core for core in self._cores if core not in self._processes)
        self._processes[core] = (job, _start(job, core, self._environment))

    def ended(self) -> list[tuple[Job, int]]:
        """The jobs that ended since the last call, and the codes that they ended with."""
        over = {
            core: (job, process.returncode)
            for core, (job, process) in self._processes.items()
            if process.poll() is not None
        }
        for core in over:
            del self._processes[core]
        return list(over.values())

    def stop(self, job: Job) -> None:
        """Ends a job early; its run can be resumed."""
        core = next(core for core, (other, _) in self._processes.items() if other == job)
        _, process = self._processes.pop(core)
        process.terminate()
        process.wait()

    def __enter__(self) -> "Workers":
        self._stack.enter_context(_terminable())
        return self

    def __exit__(self, *error: object) -> None:
        for _, process in self._processes.values():
            process.terminate()
        for _, process in self._processes.values():
            process.wait()
        self._stack.close()


def end_with_parent() -> None:
    """Ends this process, as Ctrl-C would, once the one that runs it as a job is gone.

    A process that is killed cannot stop its jobs.
    """
    if parent := os.environ.get(_PARENT):

        def watch() -> None:
            while os.getppid() == int(parent):
                time.sleep(PARENT_SECONDS)
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=watch, daemon=True).start()


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


def _environment(folder: Path) -> dict[str, str]:
    """Lets the runs share compiled code: seeds differ in nothing that is compiled."""
    return {
        "JAX_COMPILATION_CACHE_DIR": str(folder / ".compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }


def _start(job: Job, core: int, environment: Mapping[str, str]) -> subprocess.Popen:
    job.out.parent.mkdir(parents=True, exist_ok=True)
    environment = {**environment, _PARENT: str(os.getpid())}
    with job.log.open("ab") as log:
        process = subprocess.Popen(job.command(), stdout=log, stderr=log, env=environment)
    # A process of its own core needs no thread pool; two that share both cores slow each other.
    pin(process.pid, core)
    return process


def check_ended(job: Job, code: int) -> None:
    """Raises JobFailed if a job ended with an error."""
    if code != 0:
        tail = "\n".join(job.last_words(15))
        raise JobFailed(f"{job.name} ended with code {code}; its last words ({job.log}):\n{tail}")


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
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
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
            self._bars.update(self._tasks[job], completed=steps, numbers=describe(row))
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
