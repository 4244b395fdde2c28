"""The data that flows through the system, from the environment to the learner.

Time is the first axis and the batch the second: ``[T, B, ...]``. ``x_tm1`` and ``x_t`` are the
source and the destination of a transition; rewards, discounts and step types belong to the
destination.
"""

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

__all__ = ["Events", "Key", "StepType", "TimeStep", "Trajectory", "side_by_side"]

Key = PRNGKeyArray
Events = dict[str, Float[Array, "*batch"]]


class StepType(enum.IntEnum):
    """Where a step stands in its episode."""

    FIRST = 0
    MID = 1
    LAST = 2


class TimeStep(eqx.Module):
    """What an environment shows after one step.

    Attributes:
      step_type: FIRST, MID or LAST.
      reward: the reward of arriving here; 0 on a FIRST step.
      discount: what the future beyond this step counts: 1, or 0 on a termination or where the
        task blocks the backup. A truncated episode ends with LAST and discount 1.
      observation: what the agent sees.
      events: what happened on this step, by name, for metrics and figures; never seen by the
        agent. Summed over an episode, ``events["success"]`` is the episode's success in [0, 1].
      contribution: the true contribution of this step, where it was asked for and is known: by how
        much it changed what later steps will pay. 0 on a FIRST step, and on a LAST one minus all
        that was still owed, so that the contributions of an episode sum to 0. Never seen by the
        agent.
    """

    step_type: Int[Array, "*batch"]
    reward: Float[Array, "*batch"]
    discount: Float[Array, "*batch"]
    observation: Any
    events: Events
    contribution: Float[Array, "*batch"] | None = None

    @property
    def first(self) -> Bool[Array, "*batch"]:
        """Whether an episode starts here."""
        return self.step_type == StepType.FIRST

    @property
    def last(self) -> Bool[Array, "*batch"]:
        """Whether an episode ends here."""
        return self.step_type == StepType.LAST


class Trajectory(eqx.Module):
    """An unroll of experience: T transitions between T + 1 steps.

    The last step of an unroll is the first of the next. A transition whose source is LAST leads
    into the next episode: it exists only in the data, nothing is learned from it.

    Attributes:
      timestep: what the environment showed, ``[T + 1, B]``.
      action: what the agent did in each but the last step.
      logits: the behaviour policy at each of these actions.
      value: what the agent expected when it acted.
      core: the state of the recurrent core before the first step.
    """

    timestep: TimeStep
    action: Int[Array, "time batch"]
    logits: Float[Array, "time batch actions"]
    value: Float[Array, "time batch"]
    core: Any


def side_by_side(trajectories: Sequence[Trajectory]) -> Trajectory:
    """One batch of several, all of the same length."""
    if len(trajectories) == 1:
        return trajectories[0]
    core = jax.tree.map(lambda *x: jnp.concatenate(x), *(t.core for t in trajectories))
    rest = [dataclasses.replace(t, core=None) for t in trajectories]
    joined = jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), *rest)
    return dataclasses.replace(joined, core=core)


def split_each(keys: Shaped[Key, "batch"]) -> tuple[Shaped[Key, "batch"], Shaped[Key, "batch"]]:
    """Two new keys for each key."""
    pairs = jax.vmap(jax.random.split)(keys)
    return pairs[:, 0], pairs[:, 1]


def first_step(observation: Any, event_names: tuple[str, ...]) -> TimeStep:
    """The step that opens an episode."""
    return TimeStep(
        step_type=jnp.int8(StepType.FIRST),
        reward=jnp.float32(0),
        discount=jnp.float32(1),
        observation=observation,
        events={name: jnp.float32(0) for name in event_names},
    )


def next_step(
    observation: Any,
    reward: Float[Array, ""],
    *,
    last: Bool[Array, ""],
    discount: Float[Array, ""],
    events: Events,
) -> TimeStep:
    """A step within an episode, or the one that ends it."""
    return TimeStep(
        step_type=jnp.where(last, StepType.LAST, StepType.MID).astype(jnp.int8),
        reward=reward,
        discount=discount,
        observation=observation,
        events=events,
    )
