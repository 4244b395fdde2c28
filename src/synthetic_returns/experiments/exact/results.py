"""What the comparison with exact credit leaves: every number, a table, and the figures."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

from synthetic_returns.experiments.exact.figures import draw_all
from synthetic_returns.experiments.exact.run import ExactStudy
from synthetic_returns.experiments.exact.summary import summarise
from synthetic_returns.experiments.exact.tasks import POLICIES
from synthetic_returns.experiments.figures.style import STYLE
from synthetic_returns.utils.files import write_atomically
from synthetic_returns.utils.tables import Row, write_csv

__all__ = ["markdown_table", "write_exact"]

TITLES = {
    "random": "The policy stays random; correlation after the last episode",
    "learning": "The policy learns from the credit; correlation over all of the training; "
    "expected return of the last policy",
}


def write_exact(study: ExactStudy, runs: Path, out: Path) -> list[Path]:
    """Writes the results of all runs that have finished; gives the paths.

    Raises:
      ValueError: none has.
    """
    rows = study.rows(runs)
    if not rows:
        raise ValueError(f"no run has finished in {runs}.")
    summary = summarise(rows)
    write_csv(out / "exact.csv", rows)
    write_csv(out / "table.csv", summary)
    titles = {task.name: task.title for task in study.tasks}
    write_atomically(out / "table.md", markdown_table(summary, titles))
    with matplotlib.rc_context(STYLE):
        figures = draw_all(rows, summary, titles, out)
    return [out / name for name in ("exact.csv", "table.csv", "table.md")] + figures


def markdown_table(summary: Sequence[Row], titles: dict[str, str]) -> str:
    """The correlation of every method on every task, the lowest and the highest seed beside it."""
    parts = []
    for policy in POLICIES:
        found = {(r["task"], r["method"]): r for r in summary if r["policy"] == policy}
        tasks = [task for task in titles if any(task == t for t, _ in found)]
        lines = [f"| method | {' | '.join(titles[task] for task in tasks)} |"]
        lines.append("|---" * (len(tasks) + 1) + "|")
        for method in ordered([r for r in summary if r["policy"] == policy]):
            cells = [_cell(found.get((task, method))) for task in tasks]
            lines.append(f"| `{method}` | {' | '.join(cells)} |")
        parts.append(f"**{TITLES[policy]}**\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def ordered(summary: Sequence[Row]) -> list[str]:
    """The methods, from the highest correlation on average to the lowest."""
    methods = dict.fromkeys(row["method"] for row in summary)
    mean = {m: np.mean([r["correlation"] for r in summary if r["method"] == m]) for m in methods}
    return sorted(methods, key=lambda method: -mean[method])


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    low, high = row["correlation_lowest"], row["correlation_highest"]
    text = f"{row['correlation']:.2f} ({low:.2f} .. {high:.2f})"
    if row["policy"] == "learning":
        text += f"; {row['expected_return_lowest']:.2f} .. {row['expected_return_highest']:.2f}"
    return text
