"""The list of all tasks, as a table for the terminal."""

from rich.table import Table

from synthetic_returns.envs.registry import TASKS, Task

__all__ = ["parameters_table", "tasks_table"]


def tasks_table() -> Table:
    """Every task: what it is, what it shows, how long it takes, what can be earned."""
    table = Table(title="Tasks", padding=(0, 0, 0, 1))
    table.add_column("name", no_wrap=True)
    table.add_column("what to do")
    for heading in ("sees", "actions", "steps", "random", "optimal"):
        table.add_column(heading, justify="right", no_wrap=True)
    for task in TASKS.values():
        env = task.make()
        table.add_row(
            task.name,
            task.description,
            "x".join(str(size) for size in env.observation_shape),
            str(env.num_actions),
            str(env.episode_steps),
            f"{task.random_return:.4g}",
            f"{task.optimal_return:.4g}",
        )
    return table


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
