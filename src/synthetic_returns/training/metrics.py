"""The numbers of a run over time: ``metrics.csv`` for programs, loggers for people."""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synthetic_returns.training.loggers.tags import tag_of
from synthetic_returns.training.loggers.tensorboard import TensorBoardLogger
from synthetic_returns.utils.files import RunError, write_atomically
from synthetic_returns.utils.reading import read_text
from synthetic_returns.utils.tables import csv_text

if TYPE_CHECKING:
    from synthetic_returns.training.loggers.base import MetricsLogger

__all__ = ["MetricsWriter", "read_metrics"]

STEP = "env_steps"
_STEPS = re.compile("[0-9]{1,18}")  # what an int64 holds


class MetricsWriter:
    """Appends rows to a CSV file and tells TensorBoard and other loggers.

    Every row is on disk when ``write`` returns. A name that appears for the first time becomes a
    new column, empty in the rows before it.

    Args:
      csv_path: the CSV file.
      tensorboard_path: where the event files go.
      resume_step: the step of the checkpoint from which the run goes on. Later rows are dropped,
        because they will be written again; ``None`` starts from nothing and drops them all.
      loggers: who else is told; they are closed with the writer.
    """

    def __init__(
        self,
        csv_path: Path,
        tensorboard_path: Path,
        *,
        resume_step: int | None,
        loggers: Sequence["MetricsLogger"] = (),
    ):
        self._path = csv_path
        last_kept_step = -1 if resume_step is None else resume_step
        self._columns, rows = _read_rows(csv_path) if csv_path.exists() else ([STEP], [])
        rows = [row for row in rows if int(row[0]) <= last_kept_step]
        self._last_step = int(rows[-1][0]) if rows else 0
        self._replace(rows)  # also mends a last row that a crash cut off

        self._loggers = [TensorBoardLogger(tensorboard_path, last_kept_step), *loggers]

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Adds one row.

        Args:
          step: environment steps so far; never smaller than in the row before.
          values: scalars by name; names that are left out stay empty in this row.
        """
        if step < self._last_step:
            raise ValueError(
                f"metrics of step {step} come after those of step {self._last_step}; steps must "
                "not decrease: to go back to a checkpoint, open the writer with resume_step"
            )
        if STEP in values:
            raise ValueError(f"{STEP!r} is the first column already: pass it as step only")
        numbers = {name: _as_number(name, value) for name, value in values.items()}
        self._add_columns([name for name in numbers if name not in self._columns])
        cells = {STEP: str(step)} | {name: str(number) for name, number in numbers.items()}
        self._file.write(csv_text([[cells.get(column, "") for column in self._columns]]))
        self._file.flush()
        self._last_step = step
        self.show(step, numbers)

    def show(self, step: int, values: Mapping[str, Any]) -> None:
        """Tells the loggers only: numbers that programs find in another file."""
        # What is not finite makes loggers complain on the terminal.
        finite = {tag_of(name): float(x) for name, x in values.items() if math.isfinite(x)}
        for logger in self._loggers:
            logger.scalars(step, finite)

    def image(self, step: int, tag: str, array: np.ndarray) -> None:
        """Shows ``[H, W]`` grey or ``[H, W, 3]`` colour uint8 pixels."""
        pixels = np.asarray(array)
        if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3):
            raise ValueError(
                f"image {tag!r} is {pixels.dtype}{list(pixels.shape)}; "
                "it must be uint8 [H, W] or [H, W, 3]"
            )
        for logger in self._loggers:
            logger.image(step, tag, pixels)

    def close(self) -> None:
        """Flushes and closes all outputs; harmless when repeated."""
        self._file.close()
        for logger in self._loggers:
            logger.close()

    def __enter__(self) -> "MetricsWriter":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _add_columns(self, names: list[str]) -> None:
        """Widens the table; rare, so rewriting the file is cheap enough."""
        if names:
            _, rows = _read_rows(self._path)
            self._columns += names
            self._file.close()
            self._replace([row + [""] * len(names) for row in rows])

    def _replace(self, rows: list[list[str]]) -> None:
        """Writes the whole table again and continues at its end."""
        write_atomically(self._path, csv_text([self._columns, *rows]))
        self._file = self._path.open("a", encoding="utf-8", newline="")


def read_metrics(path: Path) -> dict[str, np.ndarray]:
    """Reads a metrics file by column; ``env_steps`` is int64, the others float64.

    Empty cells are NaN. A run may be writing the file: an unfinished last row is left out.
    """
    columns, rows = _read_rows(path)
    table = zip(columns, zip(*rows, strict=True) if rows else [()] * len(columns), strict=True)
    return {
        column: np.array([int(cell) for cell in values], np.int64)
        if column == STEP
        else np.array([_number(cell, column, path) for cell in values], np.float64)
        for column, values in table
    }


def _number(cell: str, column: str, path: Path) -> float:
    try:
        return float(cell or "nan")
    except ValueError:
        raise RunError(
            f"{column} in {path} is {cell!r:.50} and must be a number: correct or delete this line"
        ) from None


def _read_rows(path: Path) -> tuple[list[str], list[list[str]]]:
    """Returns the header and the complete rows, each checked to be one."""
    text = read_text(path, "restore the file, or start a new run")
    complete = text[: text.rfind("\n") + 1]
    reader = csv.reader(io.StringIO(complete, newline=""))
    try:
        columns, rows = next(reader, [STEP]), list(reader)
    except csv.Error as error:
        raise RunError(
            f"line {reader.line_num} of {path} cannot be read ({error}): correct or delete it"
        ) from error
    if columns[:1] != [STEP]:
        raise RunError(
            f"{path} starts with the column {''.join(columns[:1])!r:.50} but the first one must be "
            f"{STEP!r}: this is not a metrics file of a run, or its header was edited"
        )
    if len(set(columns)) != len(columns):
        raise RunError(f"{path} has two columns of the same name: correct its header")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(columns) or not _STEPS.fullmatch(row[0]):
            raise RunError(
                f"line {number} of {path} does not fit its header: expected {len(columns)} cells, "
                f"the first a number of steps, but found {row!r:.100}; correct or delete this line"
            )
    return columns, rows


def _as_number(name: str, value: Any) -> Any:
    """Strips arrays off a scalar; keeps its precision, so that float32 prints short."""
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "biufV":  # V: bfloat16
        raise ValueError(
            f"metric {name!r} is {array.dtype}{list(array.shape)}; it must be one real number: "
            "take a mean, or write one metric for each entry"
        )
    return int(array) if array.dtype.kind == "b" else array[()]
