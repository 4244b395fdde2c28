"""Every task by name.

What is known about a task is in its own file. This one only says in which file to look, so that
listing the names, or registering them with Gymnasium, does not import JAX.
"""

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from synthetic_returns.envs.task import Task, gymnasium_id, suggest

__all__ = [
    "ATARI_TASKS",
    "TASKS",
    "USER_TASKS",
    "find_task",
    "make",
    "register_task",
    "register_with_gymnasium",
]

_GYMNASIUM = "synthetic_returns.envs.gymnasium_adapter"


class _TaskTable(Mapping[str, Task]):
    """Tasks by name; a file is loaded when one of its tasks is asked for."""

    def __init__(self, files: Mapping[str, tuple[str, ...]]):
        """Takes the modules of ``envs`` and the names of the entries in the ``TASKS`` of each."""
        self._files = {name: file for file, names in files.items() for name in names}
        self._loaded: dict[str, Task] = {}

    def __getitem__(self, name: str) -> Task:
        if name not in self._loaded:
            module = importlib.import_module(f"synthetic_returns.envs.{self._files[name]}")
            self._loaded |= {task.name: task for task in module.TASKS}
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._files  # without loading it

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


TASKS: Mapping[str, Task] = _TaskTable(
    {
        "chain": ("chain",),
        "catch": ("catch", "catch-delayed", "catch-scoreboard"),
        "key_to_door": (
            "key-to-door",
            "key-to-door-no-reward",
            "key-to-door-two-keys",
            "key-to-door-chained",
            "key-to-door-hidden",
        ),
        "two_sites": ("key-to-door-two-sites",),
        "umbrella": ("umbrella",),
        "watch_repair": ("watch-repair",),
        "t_maze": ("t-maze",),
        "dense": ("dense",),
        "balance": ("balance",),
    }
)
# They need the extra [atari].
ATARI_TASKS: Mapping[str, Task] = _TaskTable({"pong": ("pong",), "skiing": ("skiing",)})
USER_TASKS: dict[str, Task] = {}

# Names with a colon: the file of ``gym:ID`` and the like makes the entry with ``named``.
_FAMILIES = {"gym": "gymnasium_task", "ale": "atari", "gymnax": "gymnax_task"}


def register_task(task: Task) -> None:
    """Makes a task of your own known by its name, in this process.

    ``register_task(Task(name="maze", description="find the way out", environment=Maze))``: then
    ``make("maze")`` builds it, runs can be trained on it and opened again, and it is listed with
    the others. A later registration of the same name replaces yours.

    Raises:
      ValueError: the name is that of a task of this package, or has a colon.
    """
    if ":" in task.name:
        raise ValueError(
            f"The task name {task.name!r} has a colon, which is for gym:ID and ale:Game: use one "
            "without."
        )
    if task.name in TASKS or task.name in ATARI_TASKS:
        raise ValueError(f"There is a task {task.name!r} already: choose another name.")
    USER_TASKS[task.name] = task


def find_task(name: str) -> Task:
    """The task of this name; also ``gym:ID`` for Gymnasium, ``ale:Game`` and ``gymnax:ID``.

    Raises:
      ValueError: no task has this name.
    """
    for tasks in (TASKS, ATARI_TASKS, USER_TASKS):
        if name in tasks:
            return tasks[name]
    kind, _, which = name.partition(":")
    if kind in _FAMILIES and which:
        return importlib.import_module(f"synthetic_returns.envs.{_FAMILIES[kind]}").named(which)
    raise ValueError(
        f"There is no task {name!r}{suggest(name, _names())} The tasks are: "
        f"{', '.join(_names())}; gym:ID is any Gymnasium environment, ale:Game any Atari game and "
        "gymnax:ID any environment of gymnax. "
        "register_task adds your own."
    )


def make(name: str, **parameters: Any) -> Any:
    """Builds the environment of a task: ``make("catch-delayed", runs=40)``."""
    return find_task(name).make(**parameters)


def register_with_gymnasium() -> None:
    """Makes every task of this package available to Gymnasium's ``make`` and ``make_vec``."""
    import gymnasium

    for name in TASKS:
        if gymnasium_id(name) not in gymnasium.registry:
            gymnasium.register(
                id=gymnasium_id(name),
                entry_point=f"{_GYMNASIUM}:GymnasiumEnv",
                vector_entry_point=f"{_GYMNASIUM}:GymnasiumVectorEnv",
                kwargs={"task": name},
            )


def _names() -> tuple[str, ...]:
    return (*TASKS, *ATARI_TASKS, *USER_TASKS)
