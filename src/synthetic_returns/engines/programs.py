"""The compiled functions of engines: one set for all engines with the same settings."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from synthetic_returns.acting import actor
from synthetic_returns.acting.actor import ActorState
from synthetic_returns.agents.agent import LearnerState
from synthetic_returns.agents.registry import make_learner
from synthetic_returns.config import Config
from synthetic_returns.envs.base import VectorEnvironment
from synthetic_returns.training.settings import ReportingSettings
from synthetic_returns.types import Trajectory
from synthetic_returns.utils.sharing import shared

__all__ = ["Fused", "compile_fused", "compiled_update", "fused", "staggering", "unroll_of"]


class Fused(NamedTuple):
    """What a fused engine does in a step: an unroll and an update, or several of both at once."""

    unroll: Callable[..., Any]
    update: Callable[..., Any]
    steps: Callable[..., Any]


def fused(config: Config, *, many: bool) -> Fused:
    """For an engine on one device.

    Args:
      config: the settings.
      many: whether the states are those of several seeds.
    """
    return _fused(_of_programs(config), many)


def compiled_update(config: Config) -> Callable[..., Any]:
    """The update of a learner on one device."""
    return _update(_of_programs(config))


def compile_fused(unroll: Callable[..., Any], update: Callable[..., Any]) -> Fused:
    """Compiles both, apart and together.

    States are donated, which saves a copy of each. Everything in them is an array, so that JAX's
    own jit will do: for an update of a few milliseconds, Equinox's costs as much again.

    Args:
      unroll: acts.
      update: learns from it.
    """
    return Fused(
        jax.jit(unroll, donate_argnums=1),
        jax.jit(update, donate_argnums=0),
        jax.jit(_loop(unroll, update), donate_argnums=(0, 1)),
    )


def unroll_of(config: Config) -> Callable[..., tuple[ActorState, Trajectory]]:
    """Acts in the environments of a fused engine."""
    learner: Any = make_learner(config)
    env = VectorEnvironment(config.task, contributions=config.needs_contributions)
    length = config.engine.unroll_length

    def unroll(
        network: Any, state: ActorState, arm: Int[Array, "envs"] | None = None
    ) -> tuple[ActorState, Trajectory]:
        acting = learner.behaviour(network, len(state.key), arm=arm)
        return actor.unroll(env, acting, state, length)

    return unroll


@shared
def staggering(env: VectorEnvironment) -> Callable[..., ActorState]:
    """Begins environments at evenly spread points of their first episode."""
    return eqx.filter_jit(functools.partial(actor.stagger, env))


@shared
def _fused(config: Config, many: bool) -> Fused:
    unroll, update = unroll_of(config), make_learner(config).update
    if many:
        unroll, update = jax.vmap(unroll), jax.vmap(update)
    return compile_fused(unroll, update)


@shared
def _update(config: Config) -> Callable[..., Any]:
    return jax.jit(make_learner(config).update, donate_argnums=0)


def _of_programs(config: Config) -> Config:
    """The settings without those that change no program: runs differ by their seeds, mostly."""
    steps = config.schedule_steps or config.steps
    return dataclasses.replace(
        config, preset="custom", seed=0, steps=steps, schedule_steps=None,
        reporting=ReportingSettings(),
    )  # fmt: skip


def _loop(unroll: Callable[..., Any], update: Callable[..., Any]) -> Callable[..., Any]:
    """As many unrolls and updates as are asked for as one computation; the metrics of the last."""

    def steps(
        learner_state: LearnerState, actor_state: ActorState, updates: Int[Array, ""]
    ) -> tuple[LearnerState, ActorState, dict[str, Float[Array, "*seeds"]]]:
        def step(_: Any, carry: Any) -> tuple[LearnerState, ActorState, Any]:
            learner_state, actor_state, _ = carry
            actor_state, trajectory = unroll(learner_state.agent.network, actor_state)
            learner_state, metrics = update(learner_state, trajectory, None)
            return learner_state, actor_state, metrics

        states = learner_state, actor_state
        *_, metrics = jax.eval_shape(step, 0, (*states, None))
        nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), metrics)
        return jax.lax.fori_loop(0, updates, step, (*states, nothing))

    return steps
