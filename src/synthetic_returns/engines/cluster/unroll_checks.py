"""Whether an unroll can be learned from: a broken actor must not break the learner."""

from typing import Any

import jax
import numpy as np

from synthetic_returns.types import StepType, Trajectory

__all__ = ["find_fault"]


def find_fault(trajectory: Any, expected: Trajectory, num_actions: int) -> str | None:
    """What is wrong with an unroll, if anything is.

    Args:
      trajectory: numpy arrays from an actor.
      expected: the shapes and types that they should have.
      num_actions: actions are below this.
    """
    if jax.tree.structure(trajectory) != jax.tree.structure(expected):
        return f"it is a {type(trajectory).__name__} of other parts than a trajectory has"
    found = jax.tree_util.tree_leaves_with_path(trajectory)
    for (path, array), like in zip(found, jax.tree.leaves(expected), strict=True):
        name = jax.tree_util.keystr(path).lstrip(".")
        if np.shape(array) != like.shape or array.dtype != like.dtype:
            return (
                f"{name} is {array.dtype}{list(np.shape(array))}, not {like.dtype}"
                f"{list(like.shape)}"
            )
        if np.issubdtype(array.dtype, np.floating) and not np.all(np.isfinite(array)):
            where = np.argwhere(~np.isfinite(array))[0].tolist()
            return f"{name} is {array[tuple(where)]} at {where}"
    action, step_type = trajectory.action, trajectory.timestep.step_type
    if np.any((action < 0) | (action >= num_actions)):
        return f"action holds {action.min()} .. {action.max()}; there are {num_actions} actions"
    if np.any((step_type < min(StepType)) | (step_type > max(StepType))):
        return f"step_type holds {step_type.min()} .. {step_type.max()}"
    return None
