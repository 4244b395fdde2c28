"""Tables as CSV files: small enough to be committed, exact enough to draw everything from."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from synthetic_returns.utils.files import RunError, write_atomically
from synthetic_returns.utils.reading import read_text

__all__ = ["Row", "csv_text", "read_csv", "write_csv"]

Row = dict[str, Any]


def csv_text(lines: Iterable[Sequence[str]]) -> str:
    """Cells as the text of a CSV file."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Writes rows; the columns are those of all rows, in the order of their appearance."""
    rows = list(rows)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = ([_cell(row.get(name)) for name in columns] for row in rows)
    write_atomically(path, csv_text([columns, *cells]))


def read_csv(path: Path) -> list[Row]:
    """Reads rows; numbers as floats, empty cells as NaN. No file is no rows."""
    if not path.exists():
        return []
    text = read_text(path, "write it again with the command that made it")
    if not text.strip():
        return []
    try:
        header, *rows = csv.reader(io.StringIO(text, newline=""))
        return [
            {name: _value(cell) for name, cell in zip(header, row, strict=True)}
            for row in rows
            if row
        ]
    except (csv.Error, ValueError) as error:
        raise RunError(
            f"{path} is no table ({error}): write it again with the command that made it"
        ) from error


def _cell(value: Any) -> str:
    """Five digits are more than any seed repeats."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return ""
    if isinstance(value, float | np.floating):
        return f"{value:.5g}" if abs(value) < 1e5 else f"{value:.0f}"
    return str(value)


def _value(cell: str) -> Any:
    if cell == "":
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        return cell
