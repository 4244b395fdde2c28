"""Exact: is the credit right? Every method beside dynamic programming, on small tasks."""

from synthetic_returns.credit.registry import method_names
from synthetic_returns.envs.chain import Chain
from synthetic_returns.envs.linear_key_to_door import LinearKeyToDoor
from synthetic_returns.envs.watch_repair import WatchRepair
from synthetic_returns.experiments.exact.run import ExactStudy
from synthetic_returns.experiments.exact.tasks import Certain, Watches

__all__ = ["TASKS", "exact"]

SEEDS = 5

# The budgets are environment steps: 2,000 to 4,000 episodes.
TASKS = (
    Certain("chain", "Chain", Chain(), "chain", 40_000),
    Certain("corridor-5", "Key-to-Door in 5 cells", LinearKeyToDoor(), "chain", 10_000),
    Watches("watch-repair", "Watch repair", WatchRepair(), "watch-repair", 100_000),
)
QUICK_METHODS = ("none", "advance", "rudder", "cocoa")


def exact(*, quick: bool = False, seeds: int | None = None) -> ExactStudy:
    """What is compared.

    Args:
      quick: four methods and one task only, with two seeds.
      seeds: how many; by default 5, or 2 if quick.
    """
    if quick:
        return ExactStudy(TASKS[1:2], QUICK_METHODS, seeds or 2)
    return ExactStudy(TASKS, tuple(method_names()), seeds or SEEDS)
