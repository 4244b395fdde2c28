"""The demo: delayed Catch with and without synthetic returns, one seed, a minute and a half."""

import dataclasses
from pathlib import Path

from synthetic_returns.experiments.experiment import NONE
from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import new_figure, save
from synthetic_returns.experiments.figures.traces import draw_traces
from synthetic_returns.experiments.method_arms import ADVANCE
from synthetic_returns.experiments.outcome import Outcome, Outcomes
from synthetic_returns.experiments.studies.catch import CATCH_DELAYED_20
from synthetic_returns.experiments.study import Results, Study
from synthetic_returns.training.runs import default_run_path

__all__ = ["DEMO", "STUDY", "credited_run", "demo_folder"]

ARMS = (
    dataclasses.replace(ADVANCE, label="with synthetic returns"),
    # The paper: without synthetic returns, a discount close to one is best here.
    dataclasses.replace(NONE, label="without").with_flags("--agent.discount", "0.99"),
)
DEMO = dataclasses.replace(
    CATCH_DELAYED_20, name="demo", steps=240_000, seeds=1, bars=(), arms=ARMS
)
FIGURE = "demo.png"


def draw(results: Results, out: Path) -> list[Path]:
    """Both learning curves, and the credit over three episodes, as in the paper's figure."""
    outcomes = results[DEMO.name]
    run = credited_run(outcomes)
    balls = run.config["task"]["runs"]
    figure = new_figure(4.4)
    left, right = figure.subfigures(1, 2, width_ratios=(1, 2), squeeze=False)[0]
    curves = left.subplots()
    draw_curves(
        curves, outcomes, "catch", label=f"balls caught, of {balls}",
        title="Catch, paid at the end", solved=DEMO.solved * balls, top=float(balls),
    )  # fmt: skip
    curves.set_yticks(range(0, balls + 1, 5))
    left.legend(loc="outside lower center", ncols=2, handlelength=1.2, columnspacing=1)
    traces = run.example_traces("exploring") or run.example_traces()
    *_, lowest = draw_traces(right, traces, marks=run.event_marks, stacked=True)
    lowest.set_xlabel("step of an episode, with random actions in between")
    return [save(figure, out / FIGURE)]


def credited_run(outcomes: Outcomes) -> Outcome:
    """The run whose agent is given credit."""
    return next(runs[0] for arm, runs in outcomes.items() if arm != "none")


STUDY = Study("demo", "delayed Catch with and without synthetic returns", (DEMO,), draw)


def demo_folder(root: Path) -> Path:
    """The newest demo if it was interrupted, else the next free folder ``demo-NNN``."""
    earlier = sorted(root.glob("demo-[0-9][0-9][0-9]"))
    if earlier and not (earlier[-1] / FIGURE).exists():
        return earlier[-1]
    return default_run_path(root, "demo")
