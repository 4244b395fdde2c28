"""The Catch of catch.py for libraries that train inside one compiled call, as a gymnax environment.

A step draws one random number, for the next ball or the first one of the next episode: gymnax's own
``step`` splits a key and starts an episode every time, needed or not.
"""

from typing import Any

import jax
import jax.numpy as jnp
from catch import EPISODE_STEPS, NUM_ACTIONS, OBSERVATION_SHAPE, RUNS, SIZE
from flax import struct
from gymnax.environments import environment, spaces


@struct.dataclass
class CatchState(environment.EnvState):
    time: jax.Array
    column: jax.Array
    paddle: jax.Array


@struct.dataclass
class CatchParams(environment.EnvParams):
    max_steps_in_episode: int = EPISODE_STEPS


class CatchGymnax(environment.Environment[CatchState, CatchParams]):
    """20 balls an episode; each landing pays at once."""

    @property
    def default_params(self) -> CatchParams:
        return CatchParams()

    def step(self, key, state, action, params=None):
        return self.step_env(key, state, action, params)

    def step_env(self, key, state, action, params=None):
        """Moves the paddle and drops the ball; a finished episode is followed by the next one."""
        time = state.time + 1
        paddle = jnp.clip(state.paddle + action - 1, 0, SIZE - 1)
        row = time % SIZE
        fresh = _any_column(key)
        column = jnp.where(row == 0, fresh, state.column)
        reward = ((row == SIZE - 1) & (column == paddle)).astype(jnp.float32)
        done = time == RUNS * SIZE - 1
        state = CatchState(
            time=jnp.where(done, 0, time),
            column=jnp.where(done, fresh, column),
            paddle=jnp.where(done, SIZE // 2, paddle),
        )
        return self.get_obs(state), state, reward, done, {}

    def reset_env(self, key, params: Any = None):
        start = jnp.int32(0)
        state = CatchState(time=start, column=_any_column(key), paddle=start + SIZE // 2)
        return self.get_obs(state), state

    def get_obs(self, state, params=None, key=None):
        cells = jnp.arange(SIZE * SIZE)
        ball = state.time % SIZE * SIZE + state.column
        paddle = (SIZE - 1) * SIZE + state.paddle
        lit = (cells == ball) | (cells == paddle)
        return lit.astype(jnp.float32).reshape(OBSERVATION_SHAPE)

    @property
    def num_actions(self) -> int:
        return NUM_ACTIONS

    def action_space(self, params: Any = None) -> spaces.Discrete:
        return spaces.Discrete(NUM_ACTIONS)

    def observation_space(self, params: Any = None) -> spaces.Box:
        return spaces.Box(0, 1, OBSERVATION_SHAPE)


def _any_column(key: jax.Array) -> jax.Array:
    return jnp.int32(jax.random.uniform(key) * SIZE)
