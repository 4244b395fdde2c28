"""The one protocol of all tasks, and the batch of environments that the agent steps.

A task is a frozen dataclass of parameters with two pure functions, ``reset`` and ``step``, on one
environment; everything else (batching, starting the next episode, Gymnasium, rendering to video)
is built on these two and written once.
"""

import abc
import dataclasses
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from synthetic_returns.envs.spec import TaskSpec
from synthetic_returns.types import Key, TimeStep

__all__ = ["Environment", "VectorEnvironment", "VectorState", "select_rows"]

State = TypeVar("State", bound=eqx.Module)


class Environment(TaskSpec, Generic[State]):
    """One task: a frozen dataclass of parameters and the pure functions of its dynamics.

    Observations are float32 in [0, 1], and ``event_names`` includes "success".
    """

    @abc.abstractmethod
    def reset(self, key: Key) -> tuple[State, TimeStep]:
        """Starts an episode."""

    @abc.abstractmethod
    def step(self, state: State, action: Int[Array, ""]) -> tuple[State, TimeStep]:
        """Takes one step; after a LAST one the result is meaningless, though always defined."""

    @abc.abstractmethod
    def render(self, state: State) -> np.ndarray:
        """The whole scene as small ``[H, W, 3]`` uint8 pixels, one per cell, for people."""

    def optimal_action(self, state: State) -> Int[Array, ""]:
        """The action of a scripted policy that knows the hidden state: the documented optimum.

        Tests compare the documented return with it, traces and picture strips show it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no scripted policy: define optimal_action in its class."
        )

    def owed(self, state: State) -> Float[Array, ""]:
        """What later steps will pay because of the past, if the scripted policy continues.

        It is how much less they would pay without what the agent has done so far. A reward that was
        paid is no longer owed. The change from state to state is the true contribution of
        a step. It is used only between the steps of an episode, where it starts from 0.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not know what its steps contribute: define owed in its "
            "class."
        )

    @property
    def has_script(self) -> bool:
        """Whether the class defines ``optimal_action``."""
        return type(self).optimal_action is not Environment.optimal_action

    @property
    def has_contributions(self) -> bool:
        """Whether the class defines ``owed``."""
        return type(self).owed is not Environment.owed

    def start(self, key: Key) -> tuple[Key, tuple[State, TimeStep]]:
        """Starts an episode and returns the key that starts the one after it.

        Every way of running a task goes through here, so that a seed means the same sequence of
        episodes in a batch, alone, or behind Gymnasium.
        """
        next_key, reset_key = jax.random.split(key)
        return next_key, self.reset(reset_key)


class VectorState(eqx.Module, Generic[State]):
    """A batch of environments between two steps."""

    inner: State
    key: Shaped[Key, "batch"]
    done: Bool[Array, "batch"]


@dataclasses.dataclass(frozen=True)
class VectorEnvironment(Generic[State]):
    """A batch of one task with next-step reset.

    The step after a LAST one ignores the action and returns the FIRST step of the next episode,
    so the terminal observation stays in the data.

    Attributes:
      env: the task.
      contributions: whether steps tell their true contributions; the task has to know them.
    """

    env: Environment[State]
    contributions: bool = False

    def reset(self, keys: Shaped[Key, "batch"]) -> tuple[VectorState[State], TimeStep]:
        """Starts one episode per key."""
        keys, (inner, timestep) = jax.vmap(self._start_one)(keys)
        return VectorState(inner, keys, timestep.last), timestep

    def step(
        self, state: VectorState[State], action: Int[Array, "batch"]
    ) -> tuple[VectorState[State], TimeStep]:
        """Steps every environment, or starts its next episode where the last one is over."""
        stepped = jax.vmap(self._step_one)(state.inner, action)

        def restart_finished(keys):
            return select_rows(state.done, jax.vmap(self._start_one)(keys), (keys, stepped))

        # Resetting costs random draws, so it is only done on steps where some episode starts.
        keys, (inner, timestep) = jax.lax.cond(
            jnp.any(state.done), restart_finished, lambda keys: (keys, stepped), state.key
        )
        return VectorState(inner, keys, timestep.last), timestep

    def _start_one(self, key: Key) -> tuple[Key, tuple[State, TimeStep]]:
        key, (state, timestep) = self.env.start(key)
        if self.contributions:
            nothing = jnp.zeros_like(timestep.reward)
            timestep = dataclasses.replace(timestep, contribution=nothing)
        return key, (state, timestep)

    def _step_one(self, state: State, action: Int[Array, ""]) -> tuple[State, TimeStep]:
        after, timestep = self.env.step(state, action)
        if self.contributions:
            still_owed = jnp.where(timestep.last, 0, self.env.owed(after))
            contribution = still_owed - self.env.owed(state)
            timestep = dataclasses.replace(timestep, contribution=contribution)
        return after, timestep


def select_rows(chosen: Bool[Array, "batch"], there: Any, elsewhere: Any) -> Any:
    """Takes each row of a pytree from ``there`` where chosen, else from ``elsewhere``."""

    def pick(a, b):
        return jnp.where(jnp.reshape(chosen, chosen.shape + (1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(pick, there, elsewhere)
