"""One training run as a process of its own: what it is told, and what it leaves."""

import dataclasses
import sys
from pathlib import Path

from synthetic_returns.training.metrics import read_metrics
from synthetic_returns.training.runs import Run, RunError

__all__ = ["Job", "JobFailed", "check_ended"]


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

    def last_line(self) -> str:
        """The last of it."""
        return "".join(self.last_words(1))


def check_ended(job: Job, code: int) -> None:
    """Raises JobFailed if a job ended with an error."""
    if code != 0:
        tail = "\n".join(job.last_words(15))
        raise JobFailed(f"{job.name} ended with code {code}; its last words ({job.log}):\n{tail}")
