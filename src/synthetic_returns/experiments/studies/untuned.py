"""Untuned: one setting of the credit method ``advance`` on every task, beside none and the oracle.

The agents are those of the ``fast`` presets; nothing of the method differs from task to task. One
study has the paper's main tasks, the other, the ladder, all that are harder.
"""

import math
from pathlib import Path

from synthetic_returns.experiments.experiment import NONE, Bar, Experiment
from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import new_figure, save
from synthetic_returns.experiments.method_arms import ADVANCE, ORACLE
from synthetic_returns.experiments.study import Results, Study

__all__ = [
    "CATCH_20",
    "HIDDEN",
    "KEY_TO_DOOR",
    "LADDER",
    "MAIN",
    "SCOREBOARD",
    "STUDIES",
    "TWO_KEYS",
    "UMBRELLA_20",
]

ARMS = (ADVANCE, ORACLE, NONE)
COLUMNS = 3


def _untuned(
    name: str,
    title: str,
    task: str,
    steps: int,
    credited: str,
    *flags: str,
    solved: float = 0.95,
    quick_steps: int | None = None,
) -> Experiment:
    return Experiment(
        name=f"untuned-{name}",
        title=title,
        task=task,
        flags=flags,
        steps=steps,
        solved=solved,
        credited=credited,
        arms=ARMS,
        bars=(Bar("advance", "eval_success", at_least=solved),),
        quick_steps=quick_steps,
    )


CHAIN = _untuned("chain", "Chain", "chain", 60_000, "trigger", solved=0.98, quick_steps=40_000)
CATCH_20 = _untuned(
    "catch-20",
    "Delayed Catch, 20 balls",
    "catch-delayed",
    300_000,
    "catch",
    solved=0.98,
    quick_steps=200_000,
)
KEY_TO_DOOR = _untuned(
    "key-to-door", "Key-to-Door", "key-to-door", 400_000, "key", solved=0.98, quick_steps=300_000
)
MAIN = (CHAIN, CATCH_20, KEY_TO_DOOR)
HIDDEN = _untuned("hidden", "Hidden cause", "key-to-door-hidden", 600_000, "key")
SCOREBOARD = _untuned("scoreboard", "Scoreboard", "catch-scoreboard", 300_000, "catch")
TWO_KEYS = _untuned(
    "two-keys", "Two keys", "key-to-door-two-keys", 1_500_000, "yellow_key", solved=0.98
)
UMBRELLA_20 = _untuned("umbrella-20", "Umbrella, 20 steps", "umbrella", 300_000, "umbrella")
LADDER = (
    _untuned(
        "catch-10",
        "Delayed Catch, 10 balls",
        "catch-delayed",
        200_000,
        "catch",
        "--task.runs",
        "10",
        solved=0.98,
    ),
    _untuned(
        "catch-40",
        "Delayed Catch, 40 balls",
        "catch-delayed",
        600_000,
        "catch",
        "--task.runs",
        "40",
        solved=0.98,
    ),
    _untuned(
        "no-reward", "The door pays nothing", "key-to-door-no-reward", 400_000, "key", solved=0.98
    ),
    _untuned(
        "key-to-door-250",
        "250 distracting steps",
        "key-to-door",
        1_500_000,
        "key",
        "--task.distractor-steps",
        "250",
        "--agent.entropy-cost",
        "0.1",
    ),
    TWO_KEYS,
    _untuned("chained-2", "Two keys in a chain", "key-to-door-chained", 2_000_000, "key_1"),
    _untuned(
        "chained-3",
        "Three keys in a chain",
        "key-to-door-chained",
        3_000_000,
        "key_1",
        "--task.keys",
        "3",
    ),
    _untuned(
        "chained-4",
        "Four keys in a chain",
        "key-to-door-chained",
        3_000_000,
        "key_1",
        "--task.keys",
        "4",
    ),
    UMBRELLA_20,
    _untuned(
        "umbrella-100",
        "Umbrella, 100 steps",
        "umbrella",
        3_000_000,
        "umbrella",
        "--task.length",
        "100",
    ),
    _untuned("dense", "Dense contributions", "dense", 500_000, "success"),
    _untuned("two-sites", "Two sites", "key-to-door-two-sites", 600_000, "success"),
    HIDDEN,
    SCOREBOARD,
    _untuned("balance", "Variable length", "balance", 500_000, "success"),
)


def draw(results: Results, out: Path) -> list[Path]:
    """The learning curves of the paper's tasks."""
    return [_draw_curves(results, MAIN, out / "untuned.png")]


def draw_ladder(results: Results, out: Path) -> list[Path]:
    """The learning curves of all other tasks."""
    return [_draw_curves(results, LADDER, out / "ladder.png")]


def _draw_curves(results: Results, experiments: tuple[Experiment, ...], path: Path) -> Path:
    shown = [e for e in experiments if e.name in results]
    rows = math.ceil(len(shown) / COLUMNS)
    figure = new_figure(2.4 * rows)
    axes = list(figure.subplots(rows, COLUMNS, squeeze=False).flat)
    for ax, experiment in zip(axes, shown, strict=False):
        draw_curves(
            ax, results[experiment.name], "success", label="success", title=experiment.title,
            solved=experiment.solved, top=1.0,
        )  # fmt: skip
    for ax in axes[len(shown) :]:
        ax.set_visible(False)
    figure.axes[0].legend(loc="best")
    return save(figure, path)


STUDIES = (
    Study(
        "untuned",
        "one setting on the paper's tasks, beside the oracle",
        MAIN,
        draw,
        curves_only=True,
    ),
    Study("ladder", "the same setting on harder tasks", LADDER, draw_ladder, curves_only=True),
)
