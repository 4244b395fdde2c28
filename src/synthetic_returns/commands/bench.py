"""``synthetic-returns bench``."""

import dataclasses
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from synthetic_returns.commands.parsing import parse
from synthetic_returns.utils.suggestions import unknown

BENCHES = {
    "sa": "the state-associative pass against re-evaluation at every step",
    "envs": "steps per second of every task, in JAX and through Gymnasium",
    "agent": "steps per second of acting and learning, with and without credit",
    "atari": "agent steps per second of Skiing: the emulator, acting, training",
    "growth": "how time and memory grow with episodes, memories and more",
}
USAGE = (
    "usage: synthetic-returns bench NAME [--json FILE]\n\n"
    + "\n".join(f"  {name:<7} {text}" for name, text in BENCHES.items())
    + "\n\n  --json FILE   also write the records: a list of {name, value, unit}\n"
    + "\n  growth has more flags: synthetic-returns bench growth --help\n"
)


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Where to write the records."""

    json: Path | None = None
    """Write the records to this file: a list of {name, value, unit}."""


@dataclasses.dataclass(frozen=True)
class GrowthArguments(Arguments):
    """What should grow, and where to write the records."""

    only: tuple[Literal["episode", "capacity", "envs", "observation", "actors"], ...] = (
        "episode", "capacity", "envs", "observation", "actors",
    )  # fmt: skip
    """What should grow: the length of episodes, the capacity of the paper's memory, the number of
    environments, the size of observations, the number of actors."""
    quick: bool = False
    """Two tiny sizes of each, to see that it works. The numbers mean nothing."""


def main(arguments: Sequence[str]) -> None:
    """Runs one benchmark and prints its records."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        sys.exit(0 if arguments else 2)
    name, *rest = arguments
    if name not in BENCHES:
        raise ValueError(unknown("benchmark", name, BENCHES))
    kind = GrowthArguments if name == "growth" else Arguments
    prog = f"synthetic-returns bench {name}"
    parsed = parse(kind, rest, prog, description=f"Measures {BENCHES[name]}.")

    from synthetic_returns.bench.record import print_records, write_json

    options = {
        field.name: getattr(parsed, field.name)
        for field in dataclasses.fields(parsed)
        if field.name != "json"
    }
    records = importlib.import_module(f"synthetic_returns.bench.{name}").run(**options)
    print_records(records)
    if parsed.json:
        write_json(parsed.json, records)
