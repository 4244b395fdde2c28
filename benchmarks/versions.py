"""A benchmark of two versions in turns: has a change made anything slower?

    python benchmarks/versions.py 954ae0c agent --rounds 5
    python benchmarks/versions.py 954ae0c atari --rounds 3 --seconds 10 --json versions.json

Checks the other version out beside this one and runs ``synthetic-returns bench NAME`` of both with
the packages that are installed here. The speed of a machine changes while it works, so only runs in
turns can be compared; the table has the medians, their ratio and the ranges. What was measured is
written after every round.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent


RENAMED = {
    "atari_steps_per_s/train_fast": "atari_steps_per_s/train_counter",
    "atari_steps_per_s/train_fast_no_sr": "atari_steps_per_s/train_counter_none",
}

# Older versions cannot be told on the command line how long to measure.
PROGRAM = """
import importlib, json, sys
name, settings, path = sys.argv[1:]
records = importlib.import_module(f"synthetic_returns.bench.{name}").run(**json.loads(settings))
with open(path, "w") as file:
    json.dump({record.name: record.value for record in records}, file)
"""


def measure(checkout: Path, bench: str, settings: dict[str, float]) -> dict[str, float]:
    """The records of one run of a benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.json"
        command = [sys.executable, "-c", PROGRAM, bench, json.dumps(settings), str(path)]
        environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        records: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
    return {RENAMED.get(name, name): value for name, value in records.items()}


def summary(before: list[dict[str, float]], now: list[dict[str, float]]) -> list[dict]:
    """One row for each record that both versions have."""
    rows = []
    for name in before[0]:
        if name in now[0]:
            a, b = ([run[name] for run in runs] for runs in (before, now))
            rows.append({"name": name, "ratio": median(b) / median(a), "before": a, "now": b})
    return rows


def line(row: dict) -> str:
    """The medians and the ranges of a row."""
    a, b = (
        f"{median(x):,.0f} ({min(x):,.0f} .. {max(x):,.0f})" for x in (row["before"], row["now"])
    )
    return f"{row['name']}: {a} before, {b} now, ratio of medians {row['ratio']:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version", help="the commit or tag to compare with")
    parser.add_argument("bench", help="as in `synthetic-returns bench NAME`")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each version")
    parser.add_argument("--seconds", type=float, help="of each measurement, in atari")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    args = parser.parse_args()
    settings = {} if args.seconds is None else {"seconds": args.seconds}
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "other"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(other), args.version], check=True)
        try:
            before, now, rows = [], [], []
            for number in range(1, args.rounds + 1):
                before.append(measure(other, args.bench, settings))
                now.append(measure(ROOT, args.bench, settings))
                print(f"round {number} of {args.rounds}", file=sys.stderr, flush=True)
                rows = summary(before, now)
                if args.json is not None:
                    record = {"version": args.version, "bench": args.bench, "records": rows}
                    args.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        finally:
            subprocess.run([*git, "remove", "--force", str(other)], check=True)
    print("\n".join(map(line, rows)))


if __name__ == "__main__":
    main()
