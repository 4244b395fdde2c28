"""What unrolls and networks of a configuration look like, before there are any."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp

from synthetic_returns.agents.registry import make_learner
from synthetic_returns.config import Config
from synthetic_returns.nn.networks import Network
from synthetic_returns.types import Trajectory, first_step

__all__ = ["expected_trajectory", "network_of"]


def network_of(config: Config) -> Network:
    """The policy's network with shapes in the place of arrays."""
    return eqx.filter_eval_shape(make_learner(config).init, jax.random.key(0)).agent.network


def expected_trajectory(config: Config, num_envs: int) -> Trajectory:
    """The shapes and types of an actor's unroll."""
    time, task, network = config.engine.unroll_length, config.task, network_of(config)

    def nothing() -> Trajectory:
        seen = jnp.zeros(task.observation_shape, task.observation_dtype)
        step = first_step(seen, task.event_names)
        if config.needs_contributions:
            step = dataclasses.replace(step, contribution=jnp.zeros(()))
        return Trajectory(
            timestep=jax.tree.map(
                lambda x: jnp.broadcast_to(x, (time + 1, num_envs, *x.shape)), step
            ),
            action=jnp.zeros((time, num_envs), jnp.int32),
            logits=jnp.zeros((time, num_envs, task.num_actions)),
            value=jnp.zeros((time, num_envs)),
            core=network.initial_state(num_envs),
        )

    return jax.eval_shape(nothing)
