"""``synthetic-returns bench``."""

import dataclasses
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

import tyro

from synthetic_returns.utils.suggestions import unknown

BENCHES = {
    "sa": "the state-associative pass against re-evaluating the memory at every step",
    "envs": "steps per second of every task, in JAX and through Gymnasium",
    "agent": "environment steps per second of acting and learning, with and without SR",
    "atari": "agent steps per second of Skiing: the emulator, acting, training",
}
USAGE = (
    "usage: synthetic-returns bench NAME [--json FILE]\n\n"
    + "\n".join(f"  {name:<7} {text}" for name, text in BENCHES.items())
    + "\n\n  --json FILE   also write the records: a list of {name, value, unit}\n"
)


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Where to write the records."""

    json: Path | None = None
    """Write the records to this file: a list of {name, value, unit}."""


def main(arguments: Sequence[str]) -> None:
    """Runs one benchmark and prints its records."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        sys.exit(0 if arguments else 2)
    name, *rest = arguments
    if name not in BENCHES:
        raise ValueError(unknown("benchmark", name, BENCHES))
    parsed = tyro.cli(
        Arguments, args=rest, prog=f"synthetic-returns bench {name}", description=BENCHES[name]
    )

    from synthetic_returns.bench.record import print_records, write_json

    records = importlib.import_module(f"synthetic_returns.bench.{name}").run()
    print_records(records)
    if parsed.json:
        write_json(parsed.json, records)
