"""Runs our agent and the peers in turn, several rounds, and reports the median of each figure.

Alternating spreads whatever else the machine does over all of them. Every command prints lines of
JSON, ``{"name": ..., "value": ..., "unit": ...}``; its other output is ignored.
"""

import argparse
import json
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = {
    "rllib": "rllib.py",
    "sb3": "sb3.py",
    "sample_factory": "sample_factory_appo.py",
    "rejax": "rejax_ppo.py",
    "purejaxrl": "purejaxrl.py",
}
SETTINGS = {  # what --sweep compares; the best of each is the default of its script
    "rllib": [
        "--workers=0 --learners=0 --threads=1",
        "--workers=0 --learners=0 --threads=2",
        "--workers=1 --learners=0 --threads=1",
        "--workers=1 --learners=1 --threads=1",
        "--workers=2 --learners=0 --threads=1",
    ],
    "sb3": ["--threads=1", "--threads=2", "--threads=2 --epochs=10"],
    "sample_factory": [
        "--mode=serial --threads=1",
        "--mode=serial --threads=2",
        "--mode=async --workers=1 --splits=1",
        "--mode=async --workers=1 --splits=2",
        "--mode=async --workers=2 --splits=1",
    ],
    "rejax": ["--unroll=20", "--unroll=64", "--unroll=128", "--updates=500"],
    "purejaxrl": ["--unroll=20", "--unroll=64", "--unroll=128", "--updates=500"],
}


def read_records(output: str) -> list[dict]:
    """The lines of a command's output that are records."""
    records = []
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            if {"name", "value", "unit"} <= record.keys():
                records.append(record)
    return records


def run(command: list[str], timeout: float) -> list[dict]:
    """The records a command prints; stops the whole benchmark when it fails."""
    finished = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    records = read_records(finished.stdout)
    if finished.returncode or not records:
        sys.stderr.write(finished.stdout[-2000:] + finished.stderr[-4000:])
        raise SystemExit(
            f"{shlex.join(command)} exited with {finished.returncode} and printed "
            f"{len(records)} records; its last output is above."
        )
    return records


def summarise(samples: dict[str, list[float]], units: dict[str, str]) -> list[dict]:
    """One record per figure: the median and what it is the median of."""
    return [
        {"name": name, "value": statistics.median(values), "unit": units[name], "samples": values}
        for name, values in samples.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venvs", type=Path, required=True, help="what setup.sh was given")
    parser.add_argument(
        "--ours", action="append", default=[], help="command of ours; may be given several times"
    )
    parser.add_argument("--peers", nargs="*", choices=SCRIPTS, default=list(SCRIPTS))
    parser.add_argument("--task", choices=("catch", "skiing"), default="catch", help="RLlib's")
    parser.add_argument("--sweep", action="store_true", help="compare the peers' settings")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30, help="timed part of a peer's run")
    parser.add_argument("--timeout", type=float, default=600, help="seconds until a run is ended")
    parser.add_argument("--out", type=Path, help="file for the list of records")
    args = parser.parse_args()

    commands = [(shlex.split(command), "") for command in args.ours]
    for peer in args.peers:
        python = args.venvs / peer / "bin" / "python"
        if not python.exists():
            raise SystemExit(f"{python} does not exist; run {HERE}/setup.sh {args.venvs} {peer}")
        command = [str(python), str(HERE / SCRIPTS[peer]), f"--seconds={args.seconds}"]
        if args.task != "catch":
            if peer != "rllib":
                raise SystemExit(f"{peer} has no {args.task}: use --peers rllib.")
            command += ["--task", args.task, "--envs", "16"]
        for setting in SETTINGS[peer] if args.sweep else [""]:
            commands.append((command + setting.split(), setting))

    samples: dict[str, list[float]] = {}
    units: dict[str, str] = {}
    for round_number in range(1, args.rounds + 1):
        for command, setting in commands:
            for record in run(command, args.timeout):
                name = f"{record['name']} {setting}".strip()
                samples.setdefault(name, []).append(record["value"])
                units[name] = record["unit"]
                print(f"round {round_number}: {name} {record['value']}", file=sys.stderr)

    records = summarise(samples, units)
    for record in sorted(records, key=lambda record: -record["value"]):
        low, high = min(record["samples"]), max(record["samples"])
        print(
            f"{record['name']:<72} {record['value']:>10.0f} {record['unit']}"
            f"  (median of {len(record['samples'])}, {low:.0f} to {high:.0f})"
        )
    if args.out:
        args.out.write_text(json.dumps(records, indent=2) + "\n")


if __name__ == "__main__":
    main()
