"""Runs of a task, for tests: batches, whole episodes, and chosen situations."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.envs.base import Environment, VectorEnvironment
from synthetic_returns.envs.registry import TASKS, make
from synthetic_returns.types import TimeStep

BATCH = 5

# One task of each environment, for what does not depend on their variants.
ENVIRONMENTS = tuple({task.environment: name for name, task in TASKS.items()}.values())

# For what runs longer than it is compiled: tests compile without optimisation, and optimising a
# little halves the time of whole episodes.
jit_for_long = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 1})

Policy = Callable[[Environment, Any, jax.Array], jax.Array]


def random_policy(env: Environment, state: Any, luck: jax.Array) -> jax.Array:
    """Any action, chosen by a number from [0, 1)."""
    del state
    return jnp.int32(luck * env.num_actions)


def scripted_policy(env: Environment, state: Any, luck: jax.Array) -> jax.Array:
    del luck
    return env.optimal_action(state)


def play(env: Environment, policy: Policy, seed: int, episodes: int) -> dict[str, np.ndarray]:
    """The return, the length and the summed events of each episode, ``[episodes]``."""

    def episode(key):
        reset_key, actions_key = jax.random.split(key)
        state, _ = env.reset(reset_key)

        def step(carry, luck):
            state, over = carry
            state, timestep = env.step(state, policy(env, state, luck))
            gathered = {"return": timestep.reward, "length": jnp.float32(1), **timestep.events}
            gathered = {name: jnp.where(over, 0.0, x) for name, x in gathered.items()}
            return (state, over | timestep.last), gathered

        luck = jax.random.uniform(actions_key, (env.max_episode_steps,))
        (_, over), gathered = jax.lax.scan(step, (state, jnp.bool_(False)), luck)
        return over, {name: jnp.sum(x) for name, x in gathered.items()}

    keys = jax.random.split(jax.random.key(seed), episodes)
    over, sums = jit_for_long(jax.vmap(episode))(keys)
    assert np.all(over), "an episode is longer than max_episode_steps"
    return {name: np.asarray(x) for name, x in sums.items()}


@functools.cache
def unroll(name: str) -> tuple[np.ndarray, TimeStep]:
    """A batch under a random policy for three episodes and a bit.

    Returns:
      Actions ``[time, BATCH]`` and steps ``[1 + time, BATCH]``.
      Environment i has the key of seed i.
    """
    env = make(name)
    vector = VectorEnvironment(env)
    keys = jnp.stack([jax.random.key(seed) for seed in range(BATCH)])
    shape = (3 * env.max_episode_steps + 5, BATCH)
    actions = jax.random.randint(jax.random.key(4), shape, 0, env.num_actions)

    @jax.jit
    def run(keys, actions):
        state, first = vector.reset(keys)
        _, rest = jax.lax.scan(vector.step, state, actions)
        return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, rest)

    return np.asarray(actions), jax.tree.map(np.asarray, run(keys, actions))


def arrange(env: Environment, **parts: Any) -> Any:
    """The first state of an episode with some of its parts replaced."""
    state, _ = env.reset(jax.random.key(0))
    for name, value in parts.items():
        value = jnp.asarray(value, getattr(state, name).dtype)
        state = eqx.tree_at(lambda s, name=name: getattr(s, name), state, value)
    return state


def follow(env: Environment, state: Any, actions: Any) -> TimeStep:
    """All steps ``[time]`` that these actions lead to."""
    steps = _follow(env, state, jnp.asarray(actions, jnp.int32))
    return jax.tree.map(np.asarray, steps)


@functools.partial(jax.jit, static_argnums=0)
def _follow(env, state, actions):
    return jax.lax.scan(env.step, state, actions)[1]
