"""What the state-associative model of a run says about every step of played episodes."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from synthetic_returns.agents.impala.learner import Agent
from synthetic_returns.config import Config
from synthetic_returns.credit.episodes import bucket
from synthetic_returns.credit.episodic.state import EpisodicState
from synthetic_returns.credit.old_explanation import Explanation
from synthetic_returns.credit.paper.memory import memory_sum
from synthetic_returns.credit.paper.method import Paper
from synthetic_returns.types import TimeStep

__all__ = ["contribution", "explain", "pad_time"]


def explain(
    config: Config, agent: Agent, credit: EpisodicState | None, timestep: TimeStep
) -> Explanation:
    """Explains one episode in each column; all NaN without synthetic returns.

    What lies behind the end of an episode means nothing.

    Args:
      config: how the model was trained.
      agent: holds the model if it is trained with the policy (the method paper).
      credit: the model if it is trained on whole episodes (the method episodic).
      timestep: ``[T, B]``, each column from FIRST to LAST; what comes after is ignored.
    """
    if credit is not None:
        return _explain_episodic(credit, timestep)
    if agent.sa_model is not None:
        return _explain_own(config, agent, timestep)
    unknown = jnp.full(timestep.reward.shape, jnp.nan)
    return Explanation(unknown, unknown, unknown, unknown)


def contribution(
    agent: Agent, credit: EpisodicState | None, observation: Float[Array, "batch *shape"]
) -> Float[Array, "batch"]:
    """The synthetic return of any states; NaN without synthetic returns."""
    if credit is not None:
        return credit.contribution(observation)
    if agent.sa_model is not None:
        return agent.sa_model.contribution(agent.network.torso(observation))
    return jnp.full(observation.shape[:1], jnp.nan)


def pad_time(timestep: TimeStep, longest: int) -> TimeStep:
    """Repeats the last step until the length is one of few, so that little is compiled."""
    length = len(timestep.reward)
    missing = bucket(length, max(longest, length)) - length
    return jax.tree.map(
        lambda x: jnp.concatenate([x, jnp.repeat(x[-1:], missing, axis=0)]), timestep
    )


def _explain_episodic(credit: EpisodicState, timestep: TimeStep) -> Explanation:
    explanation = credit.explain(timestep.observation, _has_successor(timestep))
    # Terminal states earn no synthetic return.
    return eqx.tree_at(lambda e: e.c, explanation, jnp.where(timestep.last, 0, explanation.c))


def _explain_own(config: Config, agent: Agent, timestep: TimeStep) -> Explanation:
    assert agent.sa_model is not None
    assert isinstance(config.credit, Paper)
    features = agent.network.torso(timestep.observation)
    batch = timestep.reward.shape[1]
    core = agent.network.initial_state(batch)
    hidden, _ = agent.network.recur(features, timestep.first, core)
    current = hidden if config.credit.current == "core" else features
    c, g, b = (
        agent.sa_model.contribution(features),
        agent.sa_model.gate(current),
        agent.sa_model.baseline(current),
    )
    capacity = config.credit.capacity or config.task.episode_steps
    empty, none_before = jnp.zeros((batch, capacity)), jnp.zeros(batch, jnp.int32)
    c_sum_tm1 = memory_sum(empty, c, timestep.first, none_before)
    return Explanation(c, g, b, g * c_sum_tm1 + b)


def _has_successor(timestep: TimeStep) -> Bool[Array, "time batch"]:
    """Whether a state of the first episode is left by a step of it."""
    return jnp.cumsum(timestep.last, axis=0, dtype=jnp.int32) == 0
