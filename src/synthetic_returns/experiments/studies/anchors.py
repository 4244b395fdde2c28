"""Anchors: tasks for which others have published numbers, with these beside our curves."""

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatterSciNotation

from synthetic_returns.experiments.experiment import NONE, Arm, Bar, Experiment
from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import legend_below, new_figure, save
from synthetic_returns.experiments.method_arms import ADVANCE, ORACLE, method_arm
from synthetic_returns.experiments.studies import untuned
from synthetic_returns.experiments.study import Results, Study
from synthetic_returns.utils.tables import Row, read_csv

__all__ = ["EXPERIMENTS", "STUDY", "read_published"]

PUBLISHED = Path(__file__).with_name("anchors_published.csv")
COLUMNS = 3
GREY = "#666666"
WATCH_STEPS = 50  # of an episode
CREDITED = {"watch-repair": "repair", "key-to-door": "key", "t-maze": "cue"}
MOST_EPISODES = 2 * 3_800  # twice what the slowest seed of RUDDER's authors took


def _anchor(
    name: str,
    title: str,
    task: str,
    steps: int,
    *flags: str,
    arms: tuple[Arm, ...] = (ADVANCE, NONE),
    seeds: int = 4,
    bars: tuple[Bar, ...] = (),
) -> Experiment:
    return Experiment(
        f"anchors-{name}", title, task, steps, 0.95, CREDITED[task], flags, arms, seeds, bars
    )


# For all arms, exploring ends after two thirds of the steps. Before the model is good, a repair is
# a cost and nothing else, and an agent that explores little gives it up for good; an agent that
# explores to the end goes on trying what it knows to be wrong. Chosen on seed 10.
WATCH_REPAIR = _anchor(
    "watch-repair", "Watch repair", "watch-repair", 300_000,
    "--schedule-steps", "200000", "--optimizer.no-anneal",
    arms=(method_arm("rudder"), ADVANCE, ORACLE, NONE), seeds=5,
    bars=(Bar("rudder", "steps_to_solve", at_most=WATCH_STEPS * MOST_EPISODES),),
)  # fmt: skip
EXPERIMENTS = (
    WATCH_REPAIR,
    _anchor(
        "key-to-door-120", "Key-to-Door, 120 steps", "key-to-door", 800_000,
        "--task.distractor-steps", "120",
    ),
    _anchor(
        "key-to-door-500", "Key-to-Door, 500 steps", "key-to-door", 3_000_000,
        "--task.distractor-steps", "500", "--agent.entropy-cost", "0.1",
    ),
    _anchor("t-maze-20", "T-maze, 20 cells", "t-maze", 800_000),
    _anchor(
        "t-maze-50", "T-maze, 50 cells", "t-maze", 2_000_000,
        # Its memory has to be trained on whole episodes.
        "--task.corridor", "50", "--engine.unroll-length", "54",
    ),
)  # fmt: skip
# Runs of other studies, whose tasks have numbers too.
ALSO = tuple(
    e
    for e in (*untuned.MAIN, *untuned.LADDER)
    if e.name in ("untuned-key-to-door", "untuned-key-to-door-250", "untuned-catch-40")
)


def read_published() -> list[Row]:
    """What was published: a success, or a number of steps alone; each with its source."""
    return read_csv(PUBLISHED)


def draw(results: Results, out: Path) -> list[Path]:
    """Learning curves, and what was published, on one axis of steps."""
    shown = [e for e in (*EXPERIMENTS, *ALSO) if e.name in results]
    if not shown:
        return []
    published = read_published()
    rows = math.ceil(len(shown) / COLUMNS)
    figure = new_figure(2.7 * rows + 0.3)
    axes = list(figure.subplots(rows, COLUMNS, squeeze=False).flat)
    for ax, experiment in zip(axes, shown, strict=False):
        draw_curves(
            ax, results[experiment.name], "success", label="success", title=experiment.title,
            solved=experiment.solved, top=1.0,
        )  # fmt: skip
        begin = min(run.steps[0] for runs in results[experiment.name].values() for run in runs)
        _draw_published(
            ax, [r for r in published if r["experiment"] == experiment.name], float(begin)
        )
    for ax in axes[len(shown) :]:
        ax.set_visible(False)
    legend_below(figure, columns=4)
    return [save(figure, out / "anchors.png")]


def _draw_published(ax: Axes, rows: Sequence[Row], begin: float) -> None:
    """A ring for a success, a line for a number of steps of which no success is known."""
    ax.set_xscale("log")
    ax.set_xlim(begin, 1.6 * max([*(row["env_steps"] for row in rows), ax.get_xlim()[1]]))
    ax.set_xlabel("environment steps")
    ax.xaxis.set_major_formatter(LogFormatterSciNotation())
    for number, row in enumerate(rows):  # each label a line below the one before
        at, value, text = row["env_steps"], row["value"], {"fontsize": 7, "color": GREY}
        if value == value:
            ax.scatter(at, value, s=30, facecolor="white", edgecolor=GREY, zorder=4)
            ax.annotate(row["who"], (at, value), xytext=(0, -12 - 9 * number), ha="center",
                        textcoords="offset points", **text)  # fmt: skip
        else:
            ax.axvline(at, color=GREY, linewidth=0.9, linestyle=":")
            ax.annotate(f"{row['what']} of {row['who']}", (at, 0.03), xytext=(-3, 0), rotation=90,
                        textcoords="offset points", ha="right", va="bottom", **text)  # fmt: skip


STUDY = Study(
    "anchors",
    "tasks for which others have published numbers",
    EXPERIMENTS,
    draw,
    also=ALSO,
    curves_only=True,
)
