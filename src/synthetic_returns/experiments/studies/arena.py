"""Arena: every credit method on the tasks of the field, with the same agent and budget."""

import dataclasses
from collections.abc import Sequence

from synthetic_returns.credit.registry import method_names
from synthetic_returns.experiments.comparison.plan import with_methods
from synthetic_returns.experiments.experiment import Experiment

__all__ = ["NAME", "TASKS", "arena"]

NAME = "arena"
PRESET, TUNED = "fast", "advance"  # the agent of all, and the method that its settings are for
SEEDS = 5
QUICK_METHODS = ("none", "oracle", "advance")


def _task(
    name: str,
    title: str,
    task: str,
    steps: int,
    solved: float,
    *flags: str,
    quick: int | None = None,
) -> Experiment:
    return Experiment(
        name, title, task, steps, solved, flags=flags, seeds=SEEDS, quick_steps=quick, traces=0
    )  # fmt: skip


# The budgets: environment steps of every run, and the success from which on a task is solved. Those
# of tasks that are in the studies untuned and ladder are the same there.
TASKS = (
    _task("chain", "Chain", "chain", 60_000, 0.98, quick=60_000),
    _task("catch-20", "Delayed Catch, 20 balls", "catch-delayed", 300_000, 0.98),
    _task("key-to-door-60", "Key-to-Door, 60 steps", "key-to-door", 400_000, 0.98),
    _task("two-sites", "Two sites", "key-to-door-two-sites", 600_000, 0.95),
    _task("scoreboard", "Scoreboard", "catch-scoreboard", 300_000, 0.95),
    _task("umbrella", "Umbrella", "umbrella", 300_000, 0.95),
    _task("watch-repair", "Watch repair", "watch-repair", 300_000, 0.95),
    _task("t-maze", "T-maze", "t-maze", 400_000, 0.95),
    _task(
        "key-to-door-250", "Key-to-Door, 250 steps", "key-to-door", 1_500_000, 0.95,
        # A third of the episodes in as many steps: explore for longer.
        "--task.distractor-steps", "250", "--agent.entropy-cost", "0.1",
    ),
)  # fmt: skip


def arena(*, quick: bool = False, seeds: int | None = None) -> list[Experiment]:
    """The whole grid: all tasks, each with one arm for every registered method.

    Args:
      quick: a small part of it, in about a minute.
      seeds: how many; by default 5, or 2 if quick.
    """
    methods: Sequence[str] = QUICK_METHODS if quick else method_names()
    tasks = [small for e in TASKS if (small := e.quick())] if quick else TASKS
    grid = [with_methods(e, methods, preset=PRESET, tuned=TUNED) for e in tasks]
    return [dataclasses.replace(e, seeds=seeds or e.seeds) for e in grid]
