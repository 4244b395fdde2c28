"""How a sweep looks on the terminal."""

import re
from collections.abc import Sequence
from pathlib import Path

from optuna.study import Study
from rich.console import Console
from rich.table import Column, Table

from synthetic_returns.experiments.sweeps.outcome import read_outcomes, setting_importance
from synthetic_returns.experiments.sweeps.study import Settings

__all__ = ["print_sweep"]


def print_sweep(study: Study, settings: Settings, files: Sequence[Path]) -> None:
    """All trials, the best first, the importance of each setting, and where everything is."""
    console = Console()
    outcomes = read_outcomes(study, settings)
    # Names wrap rather than that values are cut off, however narrow the terminal is.
    names = [re.sub("[._]", " ", name) for name in settings.space]
    titles = ["trial", "end", settings.metric, "steps", *names]
    table = Table(*(Column(title, overflow="fold") for title in titles), box=None, pad_edge=False)
    for outcome in outcomes:
        row = outcome.row()
        drawn = [_drawn(outcome.values.get(name, "")) for name in settings.space]
        table.add_row(
            str(outcome.number), outcome.end, _short(outcome.value), f"{row['env_steps']:,}", *drawn
        )
    console.print(table)
    for outcome in outcomes:
        if outcome.note:
            console.print(f"trial {outcome.number} failed: {outcome.note}", soft_wrap=True)
    importance = setting_importance(study)
    if importance:
        shares = ", ".join(f"{name} {share:.2f}" for name, share in importance.items())
        console.print(f"importance: {shares}", soft_wrap=True)
    for path in files:
        console.print(str(path), soft_wrap=True)


def _short(value: float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _drawn(value: float | str) -> str:
    return f"{value:.2g}" if isinstance(value, float) else str(value)
