"""The list of all tasks, as a table for the terminal."""

import math

from rich.table import Table

from synthetic_returns.envs.registry import ATARI_TASKS, TASKS, USER_TASKS
from synthetic_returns.envs.task import Task

__all__ = ["parameters_table", "tasks_table"]


def tasks_table() -> Table:
    """Every task: what it is, what it shows, how long it takes, what can be earned."""
    table = Table(title="Tasks", padding=(0, 0, 0, 1))
    table.add_column("name", no_wrap=True)
    table.add_column("what to do")
    for heading in ("sees", "actions", "steps", "random", "optimal"):
        table.add_column(heading, justify="right", no_wrap=True)
    for task in (*TASKS.values(), *ATARI_TASKS.values(), *USER_TASKS.values()):
        table.add_row(
            task.name,
            task.description,
            *_sizes(task),
            _number(task.random_return),
            _number(task.optimal_return),
        )
    return table


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


def parameters_table(task: Task) -> Table:
    """The parameters of a task with their defaults, and what its events mean."""
    table = Table(title=f"{task.name} ({task.gymnasium_id})", caption=task.description)
    for heading in ("", "name", "default or meaning"):
        table.add_column(heading)
    for name, default in task.parameters().items():
        table.add_row("parameter", name, repr(default))
    table.add_section()
    for name, meaning in task.events.items():
        table.add_row("event", name, meaning)
    return table
