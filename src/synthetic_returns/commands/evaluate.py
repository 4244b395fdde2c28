"""``synthetic-returns evaluate RUN``."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from synthetic_returns.commands.parsing import parse


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Plays whole episodes with the newest checkpoint of a run."""

    run: tyro.conf.Positional[Path]
    """The run directory."""
    episodes: int = 200
    """How many episodes."""
    seed: Annotated[int, tyro.conf.arg(aliases=["-s"])] = 0
    """Seed of the episodes."""
    greedy: bool = False
    """Always take the most probable action, instead of sampling as in training."""


def main(arguments: Sequence[str]) -> None:
    """Parses, plays and prints."""
    parsed = parse(Arguments, arguments, "synthetic-returns evaluate")

    from synthetic_returns.acting.evaluation import evaluate
    from synthetic_returns.training.loading import load_agent

    config, step, agent = load_agent(parsed.run)
    result = evaluate(
        config.task, agent.network, parsed.episodes, parsed.seed, greedy=parsed.greedy
    ).summary()
    table = Table("measure", "value", title=f"{parsed.run}, step {step:,}")
    table.add_row("episodes", str(result.pop("episodes")))
    low, high = result.pop("return_low"), result.pop("return_high")
    table.add_row("return", f"{result.pop('return_mean'):.3f}  ({low:.3f} .. {high:.3f})")
    for name, value in result.items():
        table.add_row(name, f"{value:.3f}")
    Console().print(table)
