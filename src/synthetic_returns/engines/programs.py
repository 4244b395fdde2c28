"""The compiled functions of engines: one set for all engines with the same settings."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
from jaxtyping import Array, Int

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


def compile_fused(unroll: Callable[..., Any], update: Callable[..., Any], updates: int) -> Fused:
    """Compiles both, apart and together.

    Args:
      unroll: acts.
      update: learns from it.
      updates: of both together.
    """
    return Fused(
        eqx.filter_jit(unroll, donate="all-except-first"),
        eqx.filter_jit(update, donate="all"),
        eqx.filter_jit(_scan(unroll, update, updates), donate="all"),
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
        unroll, update = eqx.filter_vmap(unroll), eqx.filter_vmap(update)
    return compile_fused(unroll, update, getattr(config.engine, "updates_per_call", 1))


@shared
def _update(config: Config) -> Callable[..., Any]:
    return eqx.filter_jit(make_learner(config).update, donate="all")


def _of_programs(config: Config) -> Config:
    """The settings without those that change no program: runs differ by their seeds, mostly."""
    steps = config.schedule_steps or config.steps
    return dataclasses.replace(
        config, preset="custom", seed=0, steps=steps, schedule_steps=None,
        reporting=ReportingSettings(),
    )  # fmt: skip


def _scan(
    unroll: Callable[..., Any], update: Callable[..., Any], updates: int
) -> Callable[..., Any]:
    """Several unrolls and updates as one computation; the metrics are those of the last."""

    def step(states: tuple[LearnerState, ActorState], _: None) -> tuple[Any, Any]:
        learner_state, actor_state = states
        actor_state, trajectory = unroll(learner_state.agent.network, actor_state)
        learner_state, metrics = update(learner_state, trajectory, None)
        return (learner_state, actor_state), metrics

    def steps(learner_state: LearnerState, actor_state: ActorState) -> tuple[Any, ...]:
        states, metrics = jax.lax.scan(step, (learner_state, actor_state), length=updates)
        return (*states, jax.tree.map(lambda x: x[-1], metrics))

    return steps
