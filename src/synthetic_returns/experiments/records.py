"""The results as CSV files: small enough to be committed, complete enough to draw everything."""

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from synthetic_returns.experiments.outcome import Outcome
from synthetic_returns.training.traces import Trace
from synthetic_returns.utils.files import write_atomically

__all__ = ["read_csv", "update_summary", "write_csv", "write_curve", "write_traces"]

Row = dict[str, Any]

MAX_ROWS = 200
LEARNING = (  # kept beside what was achieved
    *("sa/explained_variance", "sa/explained_final", "sa/explained_by_c"),
    *("sa/trust", "policy/entropy"),
)


def write_curve(outcome: Outcome, folder: Path) -> None:
    """The learning curve of one run, thinned out."""
    achieved = ("env_steps", "wall_s", "episode_return", *outcome.summary["eval"], *LEARNING)
    columns = {name: outcome.metrics[name] for name in achieved if name in outcome.metrics}
    stride = math.ceil(len(outcome.steps) / MAX_ROWS)
    kept = range(len(outcome.steps) - 1, -1, -stride)[::-1]  # the last row always
    rows = [{name: column[i] for name, column in columns.items()} for i in kept]
    write_csv(folder / f"{outcome.arm.name}-seed{outcome.seed}.csv", rows)


def write_traces(path: Path, traces: Sequence[Trace]) -> None:
    """Example episodes, step by step."""
    write_csv(
        path,
        [
            {"training_steps": trace.step, "t": t}
            | {name: getattr(trace, name)[t] for name in ("reward", "c", "g", "b")}
            | {name: x[t] for name, x in trace.events.items()}
            for trace in traces
            for t in range(len(trace.reward))
        ],
    )


def update_summary(path: Path, rows: Sequence[Row]) -> list[Row]:
    """Puts the rows of some experiments into the summary of all; gives the whole of it."""
    renewed = {row["experiment"] for row in rows}
    kept = [row for row in read_csv(path) if row["experiment"] not in renewed]
    merged = kept + list(rows)
    write_csv(path, merged)
    return read_csv(path)


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Writes rows; the columns are those of all rows, in the order of their appearance."""
    rows = list(rows)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns, *([_cell(row.get(name)) for name in columns] for row in rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(f"{','.join(line)}\n" for line in lines))


def read_csv(path: Path) -> list[Row]:
    """Reads rows; numbers as floats, empty cells as NaN. No file is no rows."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: _value(cell) for name, cell in row.items()} for row in csv.DictReader(file)]


def _cell(value: Any) -> str:
    """Five digits are more than any seed repeats."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return ""
    if isinstance(value, float | np.floating):
        return f"{value:.5g}" if abs(value) < 1e5 else f"{value:.0f}"
    text = str(value)
    if "," in text or '"' in text or "\n" in text:
        raise ValueError(f"{text!r} cannot be a cell; leave out commas, quotes and line breaks.")
    return text


def _value(cell: str) -> Any:
    if cell == "":
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        return cell
