"""The credit driver of a configuration and what explains its credit, for any engine."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from synthetic_returns.agents.agent import Agent
from synthetic_returns.config import Config
from synthetic_returns.credit.auxiliary import AuxiliaryMethod
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.explainer import AuxiliaryExplainer, EpisodeExplainer, Explainer
from synthetic_returns.credit.method import Assigner
from synthetic_returns.credit.needs import check_needs
from synthetic_returns.credit.novelty.method import credit_state
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.engines.shapes import expected_trajectory
from synthetic_returns.types import Trajectory

__all__ = ["check_credit", "explainer_of", "make_driver"]


def check_credit(config: Config) -> None:
    """Refuses what ``make_driver`` would refuse, and builds nothing."""
    payer = config.payer
    if payer is not None:
        spec = EpisodeSpec.of_task(config.task, config.view)
        check_needs(payer, spec)
        eqx.filter_eval_shape(lambda key: payer.init(spec, key), jax.random.key(0))


def make_driver(
    config: Config,
    seed: int,
    streams: int = 1,
    num_envs: int | None = None,
    item: Callable[[Trajectory], Any] = lambda trajectory: trajectory,
) -> CreditDriver | None:
    """The driver of everything that pays in addition to the environment: credit, novelty, or both.

    Args:
      config: the settings.
      seed: of the run.
      streams: how many actors send unrolls; each has environments of its own.
      num_envs: how many each has; by default the whole batch.
      item: what credit is given for, by its trajectory; with a replay, its number comes with it.
    """
    payer = config.payer
    if payer is None:
        return None
    num_envs = num_envs or config.engine.num_envs

    def example() -> Any:
        one = item(_zeros(expected_trajectory(config, num_envs)))
        return (0, one) if config.replays else one

    return CreditDriver(
        payer,
        EpisodeSpec.of_task(config.task, config.view),
        config.view,
        max_episode_steps=config.task.max_episode_steps,
        num_envs=num_envs,
        streams=streams,
        segment_length=config.engine.unroll_length,
        example=example,
        key=jax.random.fold_in(jax.random.key(seed), 1),
    )


def explainer_of(config: Config, agent: Agent, state: Any) -> Explainer | None:
    """What explains the credit of an agent; None if it gets none.

    Args:
      config: the settings.
      agent: the agent.
      state: what the payer of the configuration has learned, if there is one.
    """
    method = config.credit
    if isinstance(method, Assigner):
        return EpisodeExplainer(credit_state(state), method, config.view)
    if isinstance(method, AuxiliaryMethod):
        return AuxiliaryExplainer(agent.network, agent.credit, method, config.reward.scale)
    return None


def _zeros(shapes: Trajectory) -> Trajectory:
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
