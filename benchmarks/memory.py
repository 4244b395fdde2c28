"""Memory and speed over a run of the local engine, as a CSV file and a figure.

python benchmarks/memory.py runs/skiing --out benchmarks/results/skiing_memory
"""

import argparse
from pathlib import Path

import matplotlib

from synthetic_returns.experiments.figures.style import STYLE, new_figure, save
from synthetic_returns.training.runs import Run
from synthetic_returns.utils.tables import write_csv

PANELS = {"memory_mb": "memory of the process (MB)", "steps_per_s": "agent steps per second"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="without suffix")
    arguments = parser.parse_args()
    metrics = Run.open(arguments.run).read_metrics()
    names = ("env_steps", "wall_s", *PANELS)
    rows = zip(*(metrics[name] for name in names), strict=True)
    write_csv(
        arguments.out.with_suffix(".csv"), (dict(zip(names, row, strict=True)) for row in rows)
    )
    with matplotlib.rc_context(STYLE):
        figure = new_figure(2.6)
        for ax, (name, label) in zip(figure.subplots(1, 2), PANELS.items(), strict=True):
            ax.plot(metrics["wall_s"] / 60, metrics[name], color="#1f77b4")
            ax.set_title(label)
            ax.set_xlabel("minutes of training")
            ax.set_ylim(bottom=0)
        print(save(figure, arguments.out.with_suffix(".png")))


if __name__ == "__main__":
    main()
