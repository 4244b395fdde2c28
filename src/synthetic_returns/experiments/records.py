"""The results of experiments as CSV files, from which everything can be drawn."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from synthetic_returns.experiments.outcome import Outcome
from synthetic_returns.training.traces import Trace
from synthetic_returns.utils.tables import Row, read_csv, write_csv

__all__ = ["update_summary", "write_curve", "write_traces"]

MAX_ROWS = 200
LEARNING = (  # kept beside what was achieved
    *("credit/explained_variance", "credit/explained_final", "credit/explained_by_c"),
    *("credit/trust", "policy/entropy"),
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
            | {"reward": trace.reward[t]}
            | {name: x[t] for name, x in _columns(trace).items()}
            | {name: x[t] for name, x in trace.events.items()}
            for trace in traces
            for t in range(len(trace.reward))
        ],
    )


def _columns(trace: Trace) -> dict[str, np.ndarray]:
    """The terms with one number for each state, and one column for each action of the others.

    Pairs would be a column for each state: they are in the trace alone.
    """
    columns = {} if trace.reference is None else {"reference": trace.reference}
    for name, term in trace.explanation.terms.items():
        values = np.asarray(term.values)
        if term.kind == "actions":
            columns |= {f"{name}_{action}": values[:, action] for action in range(values.shape[1])}
        elif term.kind != "pairs":
            columns[name] = values
    return columns


def update_summary(path: Path, rows: Sequence[Row]) -> list[Row]:
    """Puts the rows of some arms into the summary of all; returns the whole of it."""
    renewed: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        renewed.setdefault((row["experiment"], row["arm"]), []).append(row)
    merged, placed = [], set()
    for row in read_csv(path):
        arm = row["experiment"], row["arm"]
        if arm not in renewed:
            merged.append(row)
        elif arm not in placed:  # where the earlier ones stood
            merged += renewed[arm]
            placed.add(arm)
    merged += [row for arm, new in renewed.items() if arm not in placed for row in new]
    write_csv(path, merged)
    return read_csv(path)
