"""Many training runs at once: one process per run, as many side by side as there are cores."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from synthetic_returns.training.job import Job, check_ended
from synthetic_returns.training.jobs_progress import JobsProgress
from synthetic_returns.training.runs import Run, RunError
from synthetic_returns.utils.cores import pin, usable_cores
from synthetic_returns.utils.files import acquire_lock

__all__ = ["Workers", "claim_folder", "end_with_parent", "run_jobs"]

POLL_SECONDS = 0.5
PARENT_SECONDS = 1.0
FREE_SECONDS = 30.0  # for the process of a job that was cut off to save what it has
_PARENT = "SYNTHETIC_RETURNS_PARENT"  # the process that a job belongs to


def run_jobs(
    jobs: Sequence[Job], *, workers: int | None = None, keep_going: bool = False
) -> dict[Job, str]:
    """Runs all jobs that have not finished yet, one core each, with one progress view.

    Args:
      jobs: what to run, in this order.
      workers: how many run in parallel; by default one per core.
      keep_going: whether the others go on when one fails.

    Returns:
      The jobs that failed, and how: the code of each, and the last line that it printed.

    Raises:
      JobFailed: a job ended with an error and the others do not keep going; they are stopped first,
        and can be resumed.
    """
    failed: dict[Job, str] = {}
    if not jobs:
        return failed
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
                if code and keep_going:
                    failed[job] = f"ended with code {code}: {job.last_line() or 'no words'}"
                    progress.end(job, failed[job])
                else:
                    check_ended(job, code)
                    progress.refresh([job])
    return failed


def claim_folder(folder: Path, what: str) -> BinaryIO:
    """Keeps other processes from running the jobs of a folder, until it is closed.

    Args:
      folder: is made if it is not there.
      what: they are, for the message to another process, such as "the sweep".
    """
    folder.mkdir(parents=True, exist_ok=True)
    return acquire_lock(
        folder / ".lock",
        f"{what} {folder} is being run by another process (id {{owner}}): wait for it, or stop it",
    )


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
        _wait_until_free(job.out)
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


def _wait_until_free(run: Path) -> None:
    """Lets the process of a job whose parent was killed save its run and end."""
    deadline = time.monotonic() + FREE_SECONDS
    while (run / "config.json").exists():
        try:
            Run.open(run, write=True).close()
            return
        except RunError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_SECONDS)


def _start(job: Job, core: int, environment: Mapping[str, str]) -> subprocess.Popen:
    job.out.parent.mkdir(parents=True, exist_ok=True)
    environment = {**environment, _PARENT: str(os.getpid())}
    with job.log.open("ab") as log:
        process = subprocess.Popen(job.command(), stdout=log, stderr=log, env=environment)
    # A process of its own core needs no thread pool; two that share both cores slow each other.
    pin(process.pid, core)
    return process
