"""Measures the state-associative pass and draws its time against the number of states.

    python benchmarks/sa.py

writes benchmarks/results/sa.json and docs/images/sa_scaling.png.
"""

import re
from pathlib import Path

from matplotlib.figure import Figure

from synthetic_returns.bench.record import Record, print_records, write_json
from synthetic_returns.bench.sa import run

ROOT = Path(__file__).parent.parent


def draw(records: list[Record], path: Path) -> None:
    """Milliseconds of loss and gradient over capacity + T."""
    matches = [(re.fullmatch(r"sa_ms_per_(\d+)_states", r.name), r.value) for r in records]
    points = sorted((int(match[1]), value) for match, value in matches if match)
    states, milliseconds = zip(*points, strict=True)
    figure = Figure(figsize=(5, 3), layout="constrained")
    ax = figure.subplots()
    ax.plot(states, milliseconds, "o-", color="#e8710a")
    ax.set_xlabel("capacity + T, states")
    ax.set_ylabel("loss and gradient, ms")
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    records = run()
    print_records(records)
    write_json(ROOT / "benchmarks" / "results" / "sa.json", records)
    draw(records, ROOT / "docs" / "images" / "sa_scaling.png")
