"""Which method when: what the table of a comparison says, in sentences, and no more than that."""

from collections.abc import Sequence

from synthetic_returns.experiments.comparison.summary import ALL, LIMIT
from synthetic_returns.utils.tables import Row

__all__ = ["which_method"]


def which_method(table: Sequence[Row]) -> str:
    """One item for each task, in Markdown.

    Methods that solve a task with every seed stand in the order of their steps. Two are as fast if
    the interval of the slower one reaches into that of the fastest.

    Args:
      table: the rows of table.csv.
    """
    tasks = dict.fromkeys(row["task"] for row in table if row["task"] != ALL)
    return "".join(f"- {_item(task, [r for r in table if r['task'] == task])}\n" for task in tasks)


def _item(task: str, rows: Sequence[Row]) -> str:
    methods = [row for row in rows if row["method"] != LIMIT]
    every = sorted(
        (row for row in methods if row["solved"] == row["runs"]),
        key=lambda row: (row["multiple_of_oracle"] != row["multiple_of_oracle"],
                         row["multiple_of_oracle"]),
    )  # fmt: skip
    some = [row for row in methods if 0 < row["solved"] < row["runs"]]
    never = [row for row in methods if not row["solved"]]
    parts = [_every(every)]
    if some:
        counted = (f"`{r['method']}` {r['solved']:.0f} of {r['runs']:.0f}" for r in some)
        parts.append(f"with some seeds: {', '.join(counted)}")
    if never:
        parts.append(f"with none: {_names(never)}")
    return f"**{task}**, solved {'; '.join(parts)}."


def _every(rows: Sequence[Row]) -> str:
    if not rows:
        return "with every seed by no method"
    best, *others = rows
    if best["multiple_of_oracle"] != best["multiple_of_oracle"]:  # there is no oracle
        return f"with every seed: {_names(rows)}"
    high = best["multiple_of_oracle_high"]
    as_fast = [row for row in others if row["multiple_of_oracle_low"] <= high]
    slower = [row for row in others if row not in as_fast]
    text = f"with every seed: {_with_steps([best])} times the oracle's steps"
    if as_fast:
        text += f"; no slower as far as these seeds tell: {_with_steps(as_fast)}"
    if slower:
        text += f"; slower: {_with_steps(slower)}"
    return text


def _with_steps(rows: Sequence[Row]) -> str:
    return ", ".join(
        f"`{row['method']}` {row['multiple_of_oracle']:.1f} "
        f"({row['multiple_of_oracle_low']:.1f} to {row['multiple_of_oracle_high']:.1f})"
        for row in rows
    )


def _names(rows: Sequence[Row]) -> str:
    return ", ".join(f"`{row['method']}`" for row in rows)
