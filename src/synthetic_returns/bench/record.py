"""A measured number, and the file of them that tools can compare."""

import dataclasses
import json
import pathlib
from collections.abc import Sequence

__all__ = ["Record", "print_records", "write_json"]


@dataclasses.dataclass(frozen=True)
class Record:
    """One measurement, such as ``Record("env_steps_per_s/chain", 1e6, "steps/s")``."""

    name: str
    value: float
    unit: str


def write_json(path: str | pathlib.Path, records: Sequence[Record]) -> None:
    """Writes the records as a list of objects with name, value and unit."""
    rows = [dataclasses.asdict(record) for record in records]
    pathlib.Path(path).write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def print_records(records: Sequence[Record]) -> None:
    """Shows the records as a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table("measure", "value", "unit")
    for record in records:
        digits = 3 if abs(record.value) < 10 else 1 if abs(record.value) < 1000 else 0
        table.add_row(record.name, f"{record.value:,.{digits}f}", record.unit)
    Console().print(table)
