"""Every task as a Gymnasium environment, alone and as a native vector environment.

A seed means the same episodes as on the JAX side: ``reset(seed=s)`` starts the sequence that a
``VectorEnvironment`` starts from ``jax.random.key(s)``, and a vector environment gives number
``i`` the seed ``s + i``. What happened on a step, and its discount, are in the info.
"""

import functools
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector.utils import batch_space

from synthetic_returns.envs.base import Environment, VectorEnvironment, VectorState
from synthetic_returns.envs.pictures import enlarge
from synthetic_returns.envs.registry import make
from synthetic_returns.types import StepType, TimeStep

__all__ = ["GymnasiumEnv", "GymnasiumVectorEnv"]

_METADATA = {"render_modes": ["rgb_array"], "render_fps": 8}
_VECTOR_METADATA = {
    **_METADATA,
    "autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP,
}


class GymnasiumEnv(gymnasium.Env):
    """One environment of a task."""

    metadata = _METADATA

    def __init__(self, task: str, render_mode: str | None = None, **parameters: Any):
        _check_render_mode(render_mode)
        self.task = make(task, **parameters)
        self.render_mode = render_mode
        self.observation_space, self.action_space = _spaces(self.task)
        self._key = None
        self._state: Any = None
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts the next episode, or the first one of a seed."""
        super().reset(seed=seed)
        if seed is not None:
            self._key = jax.random.key(seed)
        elif self._key is None:
            self._key = jax.random.key(_draw_seed(self.np_random))
        self._key, (self._state, timestep) = _start(self.task, self._key)
        self._over = False
        return np.array(timestep.observation), _info(timestep)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Takes one step."""
        if self._over:
            raise gymnasium.error.ResetNeeded("The episode is over: call reset() before step().")
        if not self.action_space.contains(action):
            raise ValueError(
                f"action={action!r} is not one of the {self.task.num_actions} actions: "
                f"use an integer from 0 to {self.task.num_actions - 1}."
            )
        self._state, timestep = _step(self.task, self._state, np.int32(action))
        terminated, truncated = (bool(x) for x in _endings(timestep))
        self._over = terminated or truncated
        reward = float(timestep.reward)
        return np.array(timestep.observation), reward, terminated, truncated, _info(timestep)

    def render(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A picture of the whole scene, if the render mode asks for one."""
        if self.render_mode is None:
            return None
        if self._state is None:
            raise gymnasium.error.ResetNeeded("There is no scene yet: call reset() first.")
        return enlarge(self.task.render(self._state))


class GymnasiumVectorEnv(gymnasium.vector.VectorEnv):
    """Many environments of a task in one jitted step, with next-step reset."""

    metadata = _VECTOR_METADATA

    def __init__(
        self, task: str, num_envs: int = 1, render_mode: str | None = None, **parameters: Any
    ):
        _check_render_mode(render_mode)
        if num_envs < 1:
            raise ValueError(f"num_envs={num_envs} is too small: use at least 1.")
        self.task = make(task, **parameters)
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space, self.single_action_space = _spaces(self.task)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._batch = VectorEnvironment(self.task)
        self._state: VectorState | None = None

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts an episode in every environment."""
        if isinstance(seed, int | np.integer):
            super().reset(seed=int(seed))
            seed = [int(seed) + i for i in range(self.num_envs)]
        elif seed is None and self._state is None:
            first = _draw_seed(self.np_random)
            seed = [first + i for i in range(self.num_envs)]
        if seed is not None and len(seed) != self.num_envs:
            raise ValueError(
                f"There are {len(seed)} seeds for {self.num_envs} environments: "
                "give one seed for all or one for each."
            )
        if seed is None:
            assert self._state is not None
            keys = self._state.key
        else:
            keys = jnp.stack([jax.random.key(s) for s in seed])
        self._state, timestep = _start(self._batch, keys)
        return np.array(timestep.observation), self._infos(timestep)

    def step(
        self, actions: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Steps every environment; where an episode was over, starts the next one instead."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded("Nothing has started: call reset() before step().")
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,):
            raise ValueError(
                f"The actions have shape {actions.shape}: give one for each of the "
                f"{self.num_envs} environments."
            )
        highest = self.task.num_actions - 1
        if actions.dtype.kind not in "iu" or actions.min() < 0 or actions.max() > highest:
            raise ValueError(
                f"actions={actions} are not all actions: use integers from 0 to {highest}."
            )
        self._state, timestep = _step(self._batch, self._state, actions.astype(np.int32))
        terminated, truncated = _endings(timestep)
        return (
            np.array(timestep.observation),
            np.array(timestep.reward),
            terminated,
            truncated,
            self._infos(timestep),
        )

    def render(self) -> tuple[np.ndarray, ...] | None:
        """A picture of every environment, if the render mode asks for them."""
        if self.render_mode is None:
            return None
        if self._state is None:
            raise gymnasium.error.ResetNeeded("There is no scene yet: call reset() first.")
        inner = self._state.inner
        return tuple(
            enlarge(self.task.render(jax.tree.map(lambda x, i=i: x[i], inner)))
            for i in range(self.num_envs)
        )

    def _infos(self, timestep: TimeStep) -> dict[str, np.ndarray]:
        """Arrays over the environments, each with the mask that Gymnasium expects beside it."""
        infos = {}
        for name, values in {"discount": timestep.discount, **timestep.events}.items():
            infos[name] = np.array(values)
            infos[f"_{name}"] = np.ones(self.num_envs, np.bool_)
        return infos


# A task is hashable, so equal tasks share their compiled functions.
@functools.partial(jax.jit, static_argnums=0)
def _start(env: Environment | VectorEnvironment, key):
    return env.start(key) if isinstance(env, Environment) else env.reset(key)


@functools.partial(jax.jit, static_argnums=0)
def _step(env: Environment | VectorEnvironment, state, action):
    return env.step(state, action)


def _spaces(task: Environment) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Discrete]:
    observation = gymnasium.spaces.Box(0.0, 1.0, task.observation_shape, np.float32)
    return observation, gymnasium.spaces.Discrete(task.num_actions)


def _endings(timestep: TimeStep) -> tuple[np.ndarray, np.ndarray]:
    """Whether the episode terminated, and whether it was cut off."""
    last = np.asarray(timestep.step_type) == StepType.LAST
    final = np.asarray(timestep.discount) == 0
    return np.asarray(last & final), np.asarray(last & ~final)


def _info(timestep: TimeStep) -> dict[str, float]:
    values = {"discount": timestep.discount, **timestep.events}
    return {name: float(value) for name, value in values.items()}


def _draw_seed(generator: np.random.Generator) -> int:
    return int(generator.integers(2**31))


def _check_render_mode(render_mode: str | None) -> None:
    if render_mode not in (None, "rgb_array"):
        raise ValueError(f'render_mode="{render_mode}" is unknown: use "rgb_array" or None.')
