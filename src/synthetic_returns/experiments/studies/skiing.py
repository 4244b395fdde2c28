"""Skiing: the paper's figure atari_skiing_curves, and what others have published.

The preset is ``counter``: c sees the counter of gates.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from synthetic_returns.experiments.experiment import FULL, Bar, Experiment
from synthetic_returns.experiments.figures.curves import mean_curve
from synthetic_returns.experiments.figures.style import new_figure, save
from synthetic_returns.experiments.figures.traces import draw_traces
from synthetic_returns.experiments.outcome import Outcomes
from synthetic_returns.experiments.study import Results, Study
from synthetic_returns.utils.tables import Row, read_csv

__all__ = ["HUMAN", "SKIING", "STUDY", "read_published"]

PUBLISHED = Path(__file__).with_name("skiing_published.csv")
HUMAN = -4336.9
STRAIGHT = -9013.0  # never turning
NOTE = "c sees the counter of gates"
LINE = 950  # points of score that a line of small print takes

SKIING = Experiment(
    name="skiing",
    title="Skiing",
    task="skiing",
    arms=tuple(dataclasses.replace(arm, preset="counter") for arm in FULL),
    steps=2_400_000,  # of 8 frames: 19 million
    quick_steps=600_000,
    solved=0.9,
    credited="gate",
    traces=3,  # each of the best of eight episodes, and those are long
    seeds=1,
    note=NOTE,
    bars=(Bar("episodic", "eval_return_mean", at_least=HUMAN),),
)


def read_published() -> list[Row]:
    """Scores of other agents, with the frames they took where that is known, and the source."""
    return read_csv(PUBLISHED)


def draw(results: Results, out: Path) -> list[Path]:
    """Score over frames beside what was published, gates missed, and c over three episodes."""
    outcomes = results[SKIING.name]
    figure = new_figure(5.6)
    above, below = figure.subfigures(2, 1, height_ratios=(3, 2), squeeze=False)[:, 0]
    score, gates = above.subplots(1, 2, width_ratios=(3, 2))
    _draw_score(score, outcomes)
    for runs in outcomes.values():
        arm = runs[0].arm
        for run in runs:
            gates.plot(run.steps * _skip(outcomes) / 1e6, run.curve("gates_missed"),
                       color=arm.colour, linewidth=1.4, label=arm.label)  # fmt: skip
    gates.set_title("Gates missed, of 20")
    gates.set_xlabel("frames (million)")
    gates.set_ylim(0, 20.5)
    if "episodic" in outcomes:
        example = outcomes["episodic"][0]
        axes = draw_traces(below, example.example_traces(), marks=example.event_marks)
        _leave_out_first_state(axes)
    return [save(figure, out / "skiing.png")]


def _leave_out_first_state(axes: Sequence[Axes]) -> None:
    """Shows the credit at the gates. In the first state it is what all races share, far below."""
    later = [np.asarray(ax.lines[0].get_ydata())[1:] for ax in axes if ax.lines]
    low, high = np.min(np.concatenate(later)), np.max(np.concatenate(later))
    margin = 0.05 * (high - low)
    axes[0].set_ylim(low - margin, high + margin)


def _draw_score(ax: Axes, outcomes: Outcomes) -> None:
    _draw_published(ax, [row for row in read_published() if row["frames"] > 0])
    for runs in outcomes.values():
        arm = runs[0].arm
        for run in runs:
            frames = run.steps * _skip(outcomes)
            ax.plot(frames, run.curve("episode_return"), color=arm.colour, alpha=0.4, linewidth=0.8)
        steps, mean = mean_curve(runs, "episode_return")
        ax.plot(steps * _skip(outcomes), mean, color=arm.colour, linewidth=2, label=arm.label)
    for level, name in ((HUMAN, "human"), (STRAIGHT, "never turning")):
        ax.axhline(level, color="#888888", linewidth=0.9, linestyle=(0, (4, 3)))
        ax.annotate(name, (0.01, level), xycoords=("axes fraction", "data"), va="bottom",
                    fontsize=6, color="#555555")  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlim(1e5, 2e11)
    ax.set_ylim(-32_000, -1_000)
    ax.set_title(f"Skiing; {NOTE}")
    ax.set_xlabel("frames")
    ax.set_ylabel("score")
    ax.legend(loc="center right", fontsize=7)


def _draw_published(ax: Axes, rows: list[Row]) -> None:
    """What others have reached; names stand beside their points, and not on each other."""
    many = 1e9  # frames, from which on there is no room on the right
    for side, offset in (("left", 4), ("right", -4)):
        lowest = np.inf
        group = [row for row in rows if (row["frames"] > many) == (side == "right")]
        for row in sorted(group, key=lambda row: -row["score"]):
            ax.plot(row["frames"], row["score"], "o", color="#999999", markersize=3)
            lowest = min(row["score"], lowest - LINE)
            ax.annotate(row["agent"], (row["frames"], lowest), fontsize=5.5, color="#555555",
                        xytext=(offset, 0), textcoords="offset points", ha=side)  # fmt: skip


def _skip(outcomes: Outcomes) -> np.int64:
    """Frames of a step."""
    return np.int64(next(iter(outcomes.values()))[0].config["task"]["frame_skip"])


STUDY = Study("skiing", f"Atari: gates that are paid at the end; {NOTE}", (SKIING,), draw)
