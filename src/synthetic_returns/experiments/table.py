"""The table: steps to solve and what was reached, with the paper's numbers beside ours."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from synthetic_returns.experiments.experiment import Bar, Experiment
from synthetic_returns.utils.tables import Row, read_csv

__all__ = ["HEADER", "arm_rows", "markdown_table", "published_results", "read_paper_results"]

HEADER = (
    *("experiment", "arm", "solved", "steps to solve", "seconds to solve"),
    *("return", "success", "required", "published"),
)
PAPER_RESULTS = Path(__file__).with_name("paper_results.csv")


def read_paper_results() -> list[Row]:
    """What was published, each with its source."""
    return read_csv(PAPER_RESULTS)


def published_results(experiment: str, arm: str) -> str:
    """What was published beside one arm of an experiment, in one line.

    The paper has one method: whatever gives the credit here is compared with it.
    """
    published = (experiment, arm if arm == "none" else "paper")
    rows = read_paper_results()
    return "; ".join(
        _published(row) for row in rows if (row["experiment"], row["arm"]) == published
    )


def markdown_table(summary: Sequence[Row], experiments: Mapping[str, Experiment]) -> str:
    """Writes one line for each arm of each experiment, over all its seeds.

    Steps and seconds are the median and the range over the seeds that solved the task; the return
    is the mean of the evaluations and their range.

    Args:
      summary: the rows of ``summary.csv``.
      experiments: what is known about the experiments, by name.
    """
    lines = [HEADER, ("---",) * len(HEADER), *arm_rows(summary, experiments)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def arm_rows(
    summary: Sequence[Row], experiments: Mapping[str, Experiment]
) -> list[tuple[str, ...]]:
    """The cells of the table."""
    known = list(experiments)
    seen = dict.fromkeys((row["experiment"], row["arm"]) for row in summary)
    order = sorted(seen, key=lambda arm: known.index(arm[0]) if arm[0] in known else len(known))
    rows = []
    for name, arm in order:
        seeds = [row for row in summary if (row["experiment"], row["arm"]) == (name, arm)]
        solved = [row for row in seeds if row["steps_to_solve"] == row["steps_to_solve"]]
        bars = experiments[name].bars if name in experiments else ()
        note = experiments[name].note if name in experiments and arm != "none" else ""
        rows.append(
            (
                name,
                f"{arm} ({note})" if note else arm,
                f"{len(solved)} of {len(seeds)}",
                _median((row["steps_to_solve"] / 1e6 for row in solved), "{:.2f} M"),
                _median((row["wall_s_to_solve"] for row in solved), "{:.0f}"),
                _spread([row["eval_return_mean"] for row in seeds]),
                _spread([row["eval_success"] for row in seeds]),
                "; ".join(
                    _required(bar, [row.get(bar.column, np.nan) for row in seeds])
                    for bar in bars
                    if bar.arm == arm
                ),
                published_results(name, arm),
            )
        )
    return rows


def _required(bar: Bar, values: Sequence[float]) -> str:
    held = sum(bar.holds(value) for value in values)
    return f"{bar}: {held} of {len(values)} ({_spread(values)})"


def _median(values: Iterable[float], form: str) -> str:
    values = list(values)
    if not values:
        return "-"
    middle, low, high = (form.format(f(values)) for f in (np.median, min, max))
    return middle if len(values) == 1 else f"{middle} ({low} .. {high})"


def _spread(values: Sequence[float]) -> str:
    known = [value for value in values if value == value]
    if not known:
        return "-"
    low, high = f"{min(known):.3g}", f"{max(known):.3g}"
    return low if low == high else f"{low} .. {high}"


def _published(row: Row) -> str:
    value = row["value"] if isinstance(row["value"], str) else f"{row['value']:g}"
    at = f" at {row['env_steps']:.0e}".replace("e+0", "e") if row["env_steps"] > 0 else ""
    by = " (Ni et al. 2022)" if "Ni et al." in row["source"] else ""
    return f"{row['measure']} {value}{at}{by}"
