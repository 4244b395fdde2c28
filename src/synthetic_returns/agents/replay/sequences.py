"""What is kept of steps in a replay, and what is drawn from it."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Shaped

from synthetic_returns.credit.method import Assignment
from synthetic_returns.types import TimeStep, Trajectory

__all__ = ["Drawn", "Past", "steps_of", "trajectory_of"]


class Past(eqx.Module):
    """The steps before each sequence of a batch, as far as they are kept.

    Attributes:
      observation: what was seen.
      first: whether an episode is known to start there; never in steps that are not known.
    """

    observation: Shaped[Array, "time batch *shape"]
    first: Bool[Array, "time batch"]


@dataclasses.dataclass(frozen=True, eq=False)
class Drawn:
    """A batch of sequences.

    Attributes:
      index: where each is kept.
      trajectory: what happened, ``[T + 1, B]``.
      assignment: the credit of all transitions, if there is any.
      weight: the importance of each; the largest is 1.
      past: what came before, if it is asked for.
    """

    index: np.ndarray
    trajectory: Trajectory
    assignment: Assignment | None
    weight: jax.Array
    past: Past | None = None


def steps_of(trajectory: Trajectory) -> dict[str, Any]:
    """What is kept of the steps of an unroll."""
    timestep = trajectory.timestep
    kept = {
        "observation": timestep.observation,
        "step_type": timestep.step_type,
        "reward": timestep.reward,
        "discount": timestep.discount,
        "action": trajectory.action,
        "logits": trajectory.logits,
        "value": trajectory.value,
    }
    if timestep.contribution is not None:
        kept["contribution"] = timestep.contribution
    return kept


def trajectory_of(steps: dict[str, np.ndarray], core: Any) -> Trajectory:
    """The other way round: T transitions between T + 1 steps."""
    arrays = {name: jnp.asarray(x) for name, x in steps.items()}
    of_actions = {name: arrays.pop(name)[:-1] for name in ("action", "logits", "value")}
    return Trajectory(timestep=TimeStep(**arrays, events={}), core=core, **of_actions)
