"""Draws the learning curves of agents in wrapped environments, and writes their summary.

    python benchmarks/plot_wrappers.py

reads results/wrappers/<experiment>/<arm>-seed<n>.csv, which examples/sb3_ppo.py and
examples/cleanrl_ppo.py write, and the .json with the final evaluation beside them where there is
one; writes results/wrappers/summary.csv and results/wrappers.png.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from synthetic_returns.experiments.figures.style import STYLE, new_figure, save, steps_axis
from synthetic_returns.experiments.solving import find_solving, smooth
from synthetic_returns.utils.tables import read_csv, write_csv

SOLVED = 0.95  # of the balls caught, of the doors opened
ARMS = {"episodic": ("with synthetic returns", "#e8710a"), "none": ("without", "#4285f4")}
LABELS = {
    "catch-delayed-20": "SB3 PPO, delayed Catch, 20 runs: balls caught",
    "key-to-door": "SB3 PPO, Key-to-Door: door opened",
    "key-to-door-recurrent": "SB3 RecurrentPPO, Key-to-Door: door opened",
    "cleanrl-catch-delayed-10": "single-file PPO, delayed Catch, 10 runs: balls caught",
}


def read_runs(folder: Path) -> dict[tuple[str, str, int], list[dict[str, Any]]]:
    """The learning curves by experiment, arm and seed."""
    runs = {}
    for path in sorted(folder.glob("*/*.csv")):
        match = re.fullmatch(r"(episodic|none)-seed(\d+)", path.stem)
        if match:
            runs[path.parent.name, match[1], int(match[2])] = read_csv(path)
    return runs


def summarise(folder: Path, runs: dict) -> list[dict[str, Any]]:
    rows = []
    for (experiment, arm, seed), curve in runs.items():
        success = np.array([row["success"] for row in curve])
        solving = find_solving(success, SOLVED)
        evaluation = folder / experiment / f"{arm}-seed{seed}.json"
        result = json.loads(evaluation.read_text()) if evaluation.exists() else {}
        rows.append(
            {
                "experiment": experiment,
                "arm": arm,
                "seed": seed,
                "env_steps": int(curve[-1]["env_steps"]),
                "wall_s": curve[-1]["wall_s"],
                "steps_to_solve": int(curve[solving.row]["env_steps"]) if solving else None,
                "success": float(smooth(success)[-1]),
                "best_success": float(np.nanmax(smooth(success))),
                "eval_return": result.get("eval_return"),
                "eval_success": result.get("eval_success"),
            }
        )
    return rows


def draw(runs: dict, path: Path) -> None:
    experiments = list(dict.fromkeys(experiment for experiment, _, _ in runs))
    figure = new_figure(2.6 * len(experiments))
    panels = figure.subplots(len(experiments), squeeze=False)[:, 0]
    for ax, experiment in zip(panels, experiments, strict=True):
        for arm, (label, colour) in ARMS.items():
            curves = [
                curve for (name, a, _), curve in runs.items() if (name, a) == (experiment, arm)
            ]
            for number, curve in enumerate(curves):
                steps = [row["env_steps"] for row in curve]
                success = smooth(np.array([row["success"] for row in curve]))
                ax.plot(steps, success, color=colour, label=label if number == 0 else None)
        ax.axhline(SOLVED, color="#888888", linewidth=0.9, linestyle=(0, (4, 3)))
        ax.set_ylim(-0.03, 1.06)
        ax.set_xlim(left=0)
        ax.set_title(LABELS.get(experiment, experiment))
        steps_axis(ax)
    panels[0].legend()
    save(figure, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--results", type=Path, default=Path("results"))
    results = parser.parse_args().results
    runs = read_runs(results / "wrappers")
    if not runs:
        raise SystemExit(f"{results / 'wrappers'} has no curves; run examples/sb3_ppo.py first.")
    rows = summarise(results / "wrappers", runs)
    write_csv(results / "wrappers" / "summary.csv", rows)
    with matplotlib.rc_context(STYLE):
        draw(runs, results / "wrappers.png")
    for row in rows:
        print(row)
