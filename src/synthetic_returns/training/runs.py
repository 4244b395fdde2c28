"""The run directory: everything that one training run leaves behind, and its only writer.

::

    config.json   what was run: the command, the version and every setting
    metrics.csv   numbers over time; the same in tensorboard/
    checkpoints/  the newest training states
    summary.json  the final result
"""

import contextlib
import datetime
import html
import importlib.metadata
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from synthetic_returns.training.metrics import MetricsWriter, read_metrics
from synthetic_returns.training.run_summary import portable, read_summary
from synthetic_returns.utils.files import RunError, acquire_lock, write_atomically
from synthetic_returns.utils.notebook import facts_table, line_svg
from synthetic_returns.utils.reading import read_json_object

if TYPE_CHECKING:
    from synthetic_returns.training.loggers.base import MetricsLogger

__all__ = ["Run", "RunError", "default_run_path", "file_name"]

FORMAT = 1  # of the directory; a program refuses to touch another one

_CONFIG = "config.json"
_SUMMARY = "summary.json"
_METRICS = "metrics.csv"
_LOCK = ".lock"


class Run:
    """One run directory, made by ``Run.create`` or ``Run.open``.

    A run that can be written is locked until it is closed or the process ends, however it ends;
    use it as a context manager. Any number of readers may look at it meanwhile.

    Attributes:
      path: the directory.
      config: the settings, as plain JSON data.
      command: the command line that started the run.
      created: when, as an ISO 8601 date with time zone.
      version: the version of this package that started it.
    """

    def __init__(self, path: Path, document: Mapping[str, Any], lock: BinaryIO | None):
        self.path = path
        self.config: dict[str, Any] = document["config"]
        self.command: list[str] = document["command"]
        self.created: str = document["created"]
        self.version: str = document["version"]
        self._lock = lock

    @classmethod
    def create(cls, path: str | Path, config: Mapping[str, Any], command: list[str]) -> "Run":
        """Starts a run in a directory that does not exist yet, or is empty."""
        path = Path(path)
        document = {
            "format": FORMAT,
            "version": importlib.metadata.version("synthetic-returns"),
            "command": command,
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "config": config,
        }
        text = json.dumps(document, indent=2, default=_to_plain)  # may fail: nothing is made yet
        _check_unused(path)
        path.mkdir(parents=True, exist_ok=True)
        lock = _acquire_lock(path)
        try:
            _check_unused(path)  # again: another process may have been faster
            write_atomically(path / _CONFIG, text)
        except BaseException:
            lock.close()
            raise
        return cls(path, json.loads(text), lock)

    @classmethod
    def open(cls, path: str | Path, *, write: bool = False) -> "Run":
        """Opens an existing run to read it, or to go on writing it."""
        path = Path(path)
        document = _read_config(path)
        return cls(path, document, _acquire_lock(path) if write else None)

    def change_config(self, config: Mapping[str, Any]) -> None:
        """Records other settings, for instance that the run goes on for longer than planned."""
        self._check_writable()
        document = {
            "format": FORMAT,
            "version": self.version,
            "command": self.command,
            "created": self.created,
            "config": config,
        }
        text = json.dumps(document, indent=2, default=_to_plain)
        write_atomically(self.path / _CONFIG, text)
        self.config = json.loads(text)["config"]

    def metrics(
        self, resume_step: int | None, loggers: Sequence["MetricsLogger"] = ()
    ) -> MetricsWriter:
        """Opens the metrics for writing; see ``MetricsWriter`` for the arguments."""
        self._check_writable()
        return MetricsWriter(
            self.path / _METRICS,
            self.path / "tensorboard",
            resume_step=resume_step,
            loggers=loggers,
        )

    def read_metrics(self) -> dict[str, np.ndarray]:
        """The metrics so far, by column."""
        if not (self.path / _METRICS).exists():
            raise RunError(
                f"run {self.path} has no {_METRICS} yet: it stopped before its first row"
            )
        return read_metrics(self.path / _METRICS)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Writes the final result; numbers that JSON does not know (NaN, infinity) become null."""
        self._check_writable()
        plain = portable(json.loads(json.dumps(summary, default=_to_plain)))
        write_atomically(self.path / _SUMMARY, json.dumps(plain, indent=2) + "\n")

    def summary(self) -> dict[str, Any]:
        """The final result; what could not be measured is NaN."""
        if not (self.path / _SUMMARY).exists():
            raise RunError(
                f"run {self.path} has no {_SUMMARY}: it has not finished; "
                "wait for it, or continue it with --resume"
            )
        return read_summary(self.path / _SUMMARY)

    def _repr_html_(self) -> str:
        """What it trained, how far it is, and its learning curve, in a notebook."""
        config = self.config
        rows = {
            "run": str(self.path),
            "task": str(config.get("task_name", "")),
            "credit": str(config.get("credit", {}).get("name", "")),
            "seed": str(config.get("seed", "")),
            "status": "not finished",
        }
        if (self.path / _SUMMARY).exists():
            summary = self.summary()
            rows["status"] = (
                f"finished: {summary['env_steps']:,} steps in {summary['wall_s']:.0f} s"
            )
            rows |= {name: f"{x:.4g}" for name, x in summary["eval"].items() if _is_number(x)}
        rows = {name: html.escape(value) for name, value in rows.items()}
        if (self.path / _METRICS).exists():
            metrics = self.read_metrics()
            steps, returns = metrics["env_steps"], metrics["episode_return"]
            rows["return, over the steps of training"] = line_svg(steps, returns, "return")
        return facts_table(rows)

    def close(self) -> None:
        """Releases the lock, so that others can write to the run; harmless when repeated."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _check_writable(self) -> None:
        if self._lock is None:
            raise RunError(
                f"run {self.path} is open for reading only: use Run.open(path, write=True)"
            )


def default_run_path(root: str | Path, task: str, *labels: str) -> Path:
    """Makes the next free directory for a run, such as ``runs/catch-paper-003``.

    The directory is made here and not only named, so that two processes which start at the same
    time get two directories.
    """
    stem = "-".join(file_name(part) for part in (task, *labels))
    root = Path(root)
    root.mkdir(parents=True, exist_ok=True)
    numbered = re.compile(re.escape(stem) + r"-(\d+)")
    matches = [numbered.fullmatch(entry.name) for entry in root.iterdir()]
    number = max((int(match[1]) for match in matches if match), default=0)
    while True:
        number += 1
        path = root / f"{stem}-{number:03d}"
        with contextlib.suppress(FileExistsError):
            path.mkdir()
            return path


def file_name(text: str) -> str:
    """A name as part of a path: ``gym:CartPole-v1`` is ``gym-CartPole-v1``."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _check_unused(path: Path) -> None:
    is_used = (
        any(entry.name != _LOCK for entry in path.iterdir()) if path.is_dir() else path.exists()
    )
    if is_used:
        raise FileExistsError(
            f"{path} already holds something and a run never overwrites: "
            "choose another --out, or continue this one with --resume"
        )


def _acquire_lock(path: Path) -> BinaryIO:
    """Takes the write lock."""
    return acquire_lock(
        path / _LOCK,
        f"run {path} is being written by another process (id {{owner}}) and a run has one writer: "
        "wait for it, stop it, or choose another --out",
    )


def _read_config(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise FileNotFoundError(f"there is no run {path}: no such directory; check the path")
    if not (path / _CONFIG).is_file():
        runs = [folder for folder in (path.parent, *path.glob("*/")) if (folder / _CONFIG).exists()]
        hint = (
            f"did you mean {', '.join(map(str, sorted(runs)[:5]))}?" if runs else "check the path"
        )
        raise RunError(f"{path} is not a run directory: it has no {_CONFIG}; {hint}")
    document = read_json_object(path / _CONFIG)
    found = document.get("format")
    if found != FORMAT:
        raise RunError(
            f"{path / _CONFIG} has format {found!r} but this version of synthetic-returns reads "
            f"format {FORMAT}: use the version that wrote it ({document.get('version', 'unknown')})"
        )
    kinds = {"version": str, "command": list, "created": str, "config": dict}
    for key, kind in kinds.items():
        if not isinstance(document.get(key), kind):
            raise RunError(
                f"{path / _CONFIG} lacks {key!r}, or it is not a {kind.__name__}: restore the "
                "file, or start a new run"
            )
    document["command"] = [str(word) for word in document["command"]]
    return document


def _to_plain(value: Any) -> Any:
    """What JSON gets for values it does not know."""
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # numpy and jax, arrays and scalars
        return value.tolist()
    raise TypeError(
        f"{value!r} of type {type(value).__name__} cannot be written as JSON: "
        "pass plain data, for instance dataclasses.asdict(config)"
    )
