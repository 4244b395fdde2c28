"""Measures how time and memory grow, and draws a figure of each.

    python benchmarks/growth.py

writes benchmarks/results/growth.json and docs/images/growth_*.png, and

    python benchmarks/growth.py --draw benchmarks/results/growth.json

draws what was measured before. Run it on an idle machine; it takes a quarter of an hour.
"""

import argparse
import json
import re
from pathlib import Path

from matplotlib import rc_context
from matplotlib.ticker import NullFormatter

from synthetic_returns.bench.growing import GROWING
from synthetic_returns.bench.growth import run
from synthetic_returns.bench.record import Record, print_records, write_json
from synthetic_returns.experiments.figures.style import STYLE, new_figure, save

ROOT = Path(__file__).parent.parent
PANELS = {"s": ("time", "seconds", "#e8710a"), "mb": ("memory", "megabytes", "#1f77b4")}


def draw(records: list[Record], name: str, path: Path) -> None:
    """Both series on logarithmic axes, and a line of exponent 1 through the last point."""
    values = {record.name: record.value for record in records}
    growing = GROWING[name]
    with rc_context(STYLE):
        figure = new_figure(2.8)
        for ax, (unit, (kind, label, color)) in zip(
            figure.subplots(1, 2), PANELS.items(), strict=True
        ):
            matches = [
                (re.fullmatch(rf"growth/{name}/(\d+)/{unit}", n), x) for n, x in values.items()
            ]
            points = sorted((int(match[1]), x) for match, x in matches if match)
            if not points:  # a system that does not tell its memory
                ax.set_visible(False)
                continue
            sizes, costs = zip(*points, strict=True)
            line = [costs[-1] * size / sizes[-1] for size in sizes]
            ax.plot(sizes, line, "--", color="#999999", label="exponent 1")
            of_all, of_large = (
                values[f"growth/{name}/{kind}_exponent{which}"] for which in ("", "_large")
            )
            found = f"measured, exponent {of_all:.2f}\n(larger half {of_large:.2f})"
            ax.plot(sizes, costs, "o-", color=color, label=found)
            ax.set_title(f"{kind}: {growing.timed}" if kind == "time" else "peak memory")
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
            ax.xaxis.set_minor_formatter(NullFormatter())
            ax.set_xlabel(growing.label)
            ax.set_ylabel(label)
            ax.legend()
        save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=GROWING, default=list(GROWING))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--draw", type=Path, help="records to draw, instead of measuring")
    parser.add_argument("--json", type=Path, default=ROOT / "benchmarks/results/growth.json")
    parser.add_argument("--images", type=Path, default=ROOT / "docs/images")
    args = parser.parse_args()
    if args.draw:
        records = [Record(**row) for row in json.loads(args.draw.read_text())]
    else:
        records = run(args.only, quick=args.quick)
        print_records(records)
        write_json(args.json, records)
    for name in args.only:
        draw(records, name, args.images / f"growth_{name}.png")


if __name__ == "__main__":
    main()
