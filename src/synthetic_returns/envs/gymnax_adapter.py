"""Tasks of this package with the interface of gymnax, for agents that are written against it."""

import importlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from synthetic_returns.envs.base import Environment, select_rows
from synthetic_returns.envs.registry import make
from synthetic_returns.types import Key

__all__ = ["GymnaxEnvironment", "GymnaxParams"]


class GymnaxParams(eqx.Module):
    """What gymnax hands to every function; a task of ours holds its parameters itself."""

    max_steps_in_episode: int = 1


class GymnaxEnvironment:
    """``reset(key, params)`` and ``step(key, state, action, params)`` around a task.

    As in gymnax, an episode that ends is followed by the first observation of the next one in the
    same step; its own last observation is ``info["final_observation"]``.
    """

    def __init__(self, task: Environment[Any] | str, *, done: bool = False, **parameters: Any):
        """Wraps a task.

        Args:
          task: the environment, or its name.
          done: give one ``done`` in place of ``terminated, truncated``, as gymnax before 1.0 and
            agents that are written for it.
          **parameters: of the task, if it was named.
        """
        self.task = make(task, **parameters) if isinstance(task, str) else task
        self._done = done

    @property
    def default_params(self) -> GymnaxParams:
        """The time limit."""
        return GymnaxParams(self.task.max_episode_steps)

    @property
    def name(self) -> str:
        """Of the task's class."""
        return type(self.task).__name__

    @property
    def num_actions(self) -> int:
        """Actions are the integers below this."""
        return self.task.num_actions

    def reset(self, key: Key, params: GymnaxParams | None = None) -> tuple[Array, Any]:
        """Starts an episode."""
        del params
        state, timestep = self.task.reset(key)
        return timestep.observation, state

    def step(
        self, key: Key, state: Any, action: Int[Array, ""], params: GymnaxParams | None = None
    ) -> tuple[Any, ...]:
        """Takes one step, and starts the next episode where it ends this one."""
        del params
        after, timestep = self.task.step(state, action)
        first = self.reset(key)
        ended = timestep.last
        observation, state = jax.tree.map(
            lambda x: x[0],
            select_rows(
                ended[None],
                jax.tree.map(lambda x: x[None], first),
                jax.tree.map(lambda x: x[None], (timestep.observation, after)),
            ),
        )
        terminated = ended & (timestep.discount == 0)
        info = {
            **timestep.events,
            "discount": timestep.discount,
            "final_observation": timestep.observation,
        }
        over = (ended,) if self._done else (terminated, ended & ~terminated)
        return observation, state, timestep.reward, *over, info

    def action_space(self, params: GymnaxParams | None = None) -> Any:
        """As gymnax describes it."""
        del params
        return _spaces().Discrete(self.num_actions)

    def observation_space(self, params: GymnaxParams | None = None) -> Any:
        """As gymnax describes it."""
        del params
        return _spaces().Box(0.0, 1.0, self.task.observation_shape, jnp.float32)


def _spaces() -> Any:
    try:
        return importlib.import_module("gymnax.environments.spaces")
    except ImportError as error:
        raise ImportError(
            "gymnax is not installed, and spaces are its own: "
            "pip install 'synthetic-returns[gymnax]'"
        ) from error
