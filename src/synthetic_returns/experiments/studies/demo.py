"""The demo: delayed Catch with and without synthetic returns, one seed, a few minutes."""

import dataclasses
from pathlib import Path

from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import new_figure, save
from synthetic_returns.experiments.figures.traces import draw_trace
from synthetic_returns.experiments.studies.catch import CATCH_DELAYED_20
from synthetic_returns.experiments.study import Results, Study
from synthetic_returns.training.runs import default_run_path

__all__ = ["STUDY", "demo_folder"]

DEMO = dataclasses.replace(CATCH_DELAYED_20, name="demo", steps=400_000, seeds=1, bars=())
FIGURE = "demo.png"


def draw(results: Results, out: Path) -> list[Path]:
    """Both learning curves, and where synthetic returns are given in an episode."""
    outcomes = results[DEMO.name]
    balls = outcomes["episodic"][0].config["task"]["runs"]
    figure = new_figure(3.0)
    curves, trace = figure.subplots(1, 2)
    draw_curves(
        curves, outcomes, "catch", label=f"balls caught, of {balls}",
        title="Catch, all rewards at the end", solved=DEMO.solved * balls, top=float(balls),
    )  # fmt: skip
    curves.legend(loc="best")
    draw_trace(
        trace, outcomes["episodic"][0].example_traces()[-1], "Synthetic return in one episode"
    )
    trace.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=7)
    return [save(figure, out / FIGURE)]


STUDY = Study("demo", "delayed Catch with and without synthetic returns", (DEMO,), draw)


def demo_folder(root: Path) -> Path:
    """The newest demo if it was interrupted, else the next free folder ``demo-NNN``."""
    earlier = sorted(root.glob("demo-[0-9][0-9][0-9]"))
    if earlier and not (earlier[-1] / FIGURE).exists():
        return earlier[-1]
    return default_run_path(root, "demo")
