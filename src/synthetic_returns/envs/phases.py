"""The parts of an episode that a task goes through at fixed times."""

import functools

from synthetic_returns.envs.key_to_door import KeyToDoor
from synthetic_returns.envs.key_to_door_chained import KeyToDoorChained
from synthetic_returns.envs.spec import TaskSpec

__all__ = ["Phases", "phases"]

Phases = tuple[tuple[str, int], ...]  # names, and the step at which each begins


@functools.singledispatch
def phases(task: TaskSpec) -> Phases:
    """The parts of an episode of this task; none unless it has some."""
    del task
    return ()


@phases.register
def _(task: KeyToDoor) -> Phases:
    apples, door = task.key_steps, task.key_steps + task.distractor_steps
    return (("key room", 0), ("apple room", apples), ("door room", door))


@phases.register
def _(task: KeyToDoorChained) -> Phases:
    found: list[tuple[str, int]] = [("key room", 0)]
    for key in range(task.keys):
        start = task.key_steps + key * (task.distractor_steps + task.door_steps)
        found += [("apple room", start), (f"door {key + 1}", start + task.distractor_steps)]
    return tuple(found)
