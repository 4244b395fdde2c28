"""What is in a folder of runs."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from synthetic_returns.training.runs import Run
from synthetic_returns.utils.files import RunError, is_locked

__all__ = ["ListedRun", "find_listed"]

SCORE = "episode_return"
DEPTH = 4  # folders: demo-001/runs/demo/with-seed-0


@dataclasses.dataclass(frozen=True)
class ListedRun:
    """A run directory, seen from outside.

    Attributes:
      path: the directory.
      created: when, as an ISO 8601 date; empty if that cannot be read.
      status: running, finished, interrupted or broken.
      score: the mean return, in the final evaluation or else at last in training; NaN if unknown.
      steps: environment steps so far.
      size: in bytes.
      note: why it is broken.
    """

    path: Path
    created: str
    status: str
    score: float
    steps: int
    size: int
    note: str = ""

    @classmethod
    def read(cls, path: Path) -> "ListedRun":
        """Looks at a directory; whatever is wrong with it is part of the answer."""
        size = sum(file.stat().st_size for file in _files(path))
        created = ""
        try:
            run = Run.open(path)
            created = run.created
            status, score, steps = _progress(run)
        except (OSError, RunError) as error:
            return cls(path, created, "broken", float("nan"), 0, size, str(error))
        return cls(path, created, status, score, steps, size)


def find_listed(folder: Path) -> list[ListedRun]:
    """The runs in a folder and in the folders below it, the newest first."""
    if not folder.is_dir():
        raise FileNotFoundError(
            f"there is no folder {folder}: name one with runs, or train one with "
            "synthetic-returns train TASK"
        )
    listed = [ListedRun.read(path) for path in _run_folders(folder, DEPTH)]
    return sorted(listed, key=lambda run: (run.created, run.path.name), reverse=True)


def _run_folders(folder: Path, depth: int) -> Iterator[Path]:
    """The folders with a configuration; there is nothing to find below one."""
    if (folder / "config.json").exists():
        yield folder
    elif depth:
        for path in sorted(folder.iterdir()):
            if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
                yield from _run_folders(path, depth - 1)


def _progress(run: Run) -> tuple[str, float, int]:
    """How far a run is: its status, score and steps."""
    running = is_locked(run.path / ".lock")
    if not running and (run.path / "summary.json").exists():
        summary = run.summary()
        return "finished", float(summary["eval"]["return_mean"]), int(summary["env_steps"])
    status = "running" if running else "interrupted"
    if not (run.path / "metrics.csv").exists():
        return status, float("nan"), 0
    metrics = run.read_metrics()
    if not len(metrics["env_steps"]):
        return status, float("nan"), 0
    score = float(metrics[SCORE][-1]) if SCORE in metrics else float("nan")
    return status, score, int(metrics["env_steps"][-1])


def _files(path: Path) -> Iterator[Path]:
    """Regular files, links not followed: they may lead anywhere."""
    return (file for file in path.rglob("*") if file.is_file() and not file.is_symlink())
