"""The list of all tasks, and the parameters of each, for the terminal."""

import math

from synthetic_returns.envs.registry import ATARI_TASKS, TASKS, USER_TASKS
from synthetic_returns.envs.task import Task
from synthetic_returns.utils.listing import Listing

__all__ = ["parameters_listing", "tasks_listing"]


def tasks_listing() -> Listing:
    """Every task: what it is, what it shows, how long it takes, what can be earned."""
    numbers = ("sees", "actions", "steps", "random", "optimal")
    rows = [
        (
            task.name,
            *_sizes(task),
            _number(task.random_return),
            _number(task.optimal_return),
            task.description,
        )
        for task in (*TASKS.values(), *ATARI_TASKS.values(), *USER_TASKS.values())
    ]
    return Listing(("name", *numbers, "what to do"), rows, frozenset(numbers), below="what to do")


def _sizes(task: Task) -> tuple[str, str, str]:
    """What it shows, how many actions it takes, how long it lasts."""
    try:
        env = task.make()
    except ImportError:  # its extra is not installed
        return ("-", "-", "-")
    shape = "x".join(str(size) for size in env.observation_shape)
    return shape, str(env.num_actions), str(env.max_episode_steps)


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"


def parameters_listing(task: Task) -> Listing:
    """The parameters of a task with their defaults, and what its events mean."""
    rows = [("parameter", name, repr(default)) for name, default in task.parameters().items()]
    rows += [("event", name, meaning) for name, meaning in task.events.items()]
    return Listing(("kind", "name", "default or meaning"), rows)
