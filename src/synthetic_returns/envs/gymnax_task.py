"""Any gymnax environment as a task: ``gymnax:CartPole-v1``; needs the extra ``[gymnax]``.

Observation: that of the environment, as float32.
Actions: those of the environment, which have to be discrete.
Reward, termination: those of the environment. An episode that is cut off by its time limit is
  bootstrapped from, where gymnax tells the two apart (from version 1.0 on).
"""

import contextlib
import dataclasses
import functools
import importlib
from collections.abc import Iterator
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import tyro
from jaxtyping import Array, Int

from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.task import Task
from synthetic_returns.types import Key, TimeStep, first_step, next_step
from synthetic_returns.utils.checks import check_positive

__all__ = ["GymnaxState", "GymnaxTask", "named"]


class GymnaxState(eqx.Module):
    """The environment's own state, the key of its next step, and the time."""

    inner: Any
    key: Key
    time: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class GymnaxTask(Environment[GymnaxState]):
    """An environment of gymnax.

    Attributes:
      env_id: its id.
      max_episode_steps: another time limit than its own.
    """

    env_id: Annotated[str, tyro.conf.Suppress]
    """The environment's id."""
    max_episode_steps: int | None = None  # pyright: ignore
    """The time limit of an episode; by default the environment's own."""

    def __post_init__(self) -> None:
        env, params = _made(self.env_id)
        limit = self.max_episode_steps
        limit = int(params.max_steps_in_episode) if limit is None else limit
        check_positive("max_episode_steps", limit)
        object.__setattr__(self, "max_episode_steps", limit)
        if not hasattr(env.action_space(params), "n"):
            raise ValueError(
                f"the actions of {self.env_id} are a {type(env.action_space(params)).__name__} and "
                "have to be discrete: choose another environment."
            )

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """That of the environment."""
        env, params = _made(self.env_id)
        return tuple(env.observation_space(params).shape)

    @property
    def num_actions(self) -> int:
        """That of the environment."""
        env, params = _made(self.env_id)
        return int(env.action_space(params).n)

    @property
    def event_names(self) -> tuple[str, ...]:
        """None: what happens there is not known."""
        return ()

    def reset(self, key: Key) -> tuple[GymnaxState, TimeStep]:
        """Starts an episode."""
        env, params = _made(self.env_id)
        reset_key, key = jax.random.split(key)
        with _their_rules():
            observation, inner = _strong(env.reset_env(reset_key, params))
        return GymnaxState(inner, key, jnp.int32(0)), first_step(_seen(observation), ())

    def step(self, state: GymnaxState, action: Int[Array, ""]) -> tuple[GymnaxState, TimeStep]:
        """Takes one step, without starting the next episode."""
        env, params = _made(self.env_id)
        step_key, key = jax.random.split(state.key)
        time = state.time + 1
        cut_off = time >= self.max_episode_steps  # pyright: ignore
        with _their_rules():
            observation, inner, reward, ended, _ = env.step_env(
                step_key, state.inner, action, params
            )
            inner = _strong(inner)
            if hasattr(env, "is_truncated"):  # else its own limit is part of what ended it
                cut_off |= env.is_truncated(inner, params)
        timestep = next_step(
            _seen(observation),
            jnp.asarray(reward, jnp.float32),
            last=jnp.asarray(ended) | cut_off,
            discount=jnp.where(ended, jnp.float32(0), jnp.float32(1)),
            events={},
        )
        return GymnaxState(inner, key, time), timestep

    def render(self, state: GymnaxState) -> np.ndarray:
        """A grey cell: gymnax draws with libraries of its own."""
        del state
        return np.full((1, 1, 3), 128, np.uint8)


def named(env_id: str) -> Task:
    """The task ``gymnax:ID``."""
    return Task(
        name=f"gymnax:{env_id}",
        description=f"the gymnax environment {env_id}",
        environment=GymnaxTask,
        defaults={"env_id": env_id},
        unscripted="nothing is known about what happens there",
    )


@contextlib.contextmanager
def _their_rules() -> Iterator[None]:
    """What gymnax may leave to JAX, however strict we are."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _strong(tree: Any) -> Any:
    """With types that do not depend on how a number was made, so that loops can carry them."""
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.asarray(x).dtype), tree)


def _seen(observation: Any) -> Array:
    return jnp.asarray(observation).astype(jnp.float32)


@functools.cache
def _made(env_id: str) -> tuple[Any, Any]:
    """The environment and its parameters."""
    try:
        gymnax = importlib.import_module("gymnax")
    except ImportError as error:
        raise ImportError(
            f"gymnax is not installed and {env_id} is one of its environments: "
            "pip install 'synthetic-returns[gymnax]'"
        ) from error
    try:
        return gymnax.make(env_id)
    except ValueError as error:
        raise ValueError(f"gymnax cannot make {env_id!r} ({error}): check the id.") from error
