"""What the credit method of a run says about every step of played episodes."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from synthetic_returns.agents.impala.learner import Agent
from synthetic_returns.config import Config
from synthetic_returns.credit.episodes import bucket
from synthetic_returns.credit.episodic.state import EpisodicState
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.paper.memory import memory_sum
from synthetic_returns.credit.paper.method import Paper
from synthetic_returns.types import TimeStep

__all__ = ["contribution", "explain", "pad_time"]


def explain(
    config: Config, agent: Agent, credit: EpisodicState | None, timestep: TimeStep
) -> Explanation:
    """Explains one episode in each column, in units of reward; without credit there are no terms.

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
    return Explanation()


def contribution(
    config: Config,
    agent: Agent,
    credit: EpisodicState | None,
    observation: Float[Array, "batch *shape"],
) -> Float[Array, "batch"] | None:
    """The credit of any states, in units of reward; None without credit."""
    if credit is not None:
        return credit.contribution(observation)
    if agent.sa_model is not None:
        return agent.sa_model.contribution(agent.network.torso(observation)) / config.reward_scale
    return None


def pad_time(timestep: TimeStep, longest: int) -> TimeStep:
    """Repeats the last step until the length is one of few, so that little is compiled."""
    length = len(timestep.reward)
    missing = bucket(length, max(longest, length)) - length
    return jax.tree.map(
        lambda x: jnp.concatenate([x, jnp.repeat(x[-1:], missing, axis=0)]), timestep
    )


def _explain_episodic(credit: EpisodicState, timestep: TimeStep) -> Explanation:
    explanation = credit.explain(timestep.observation, _has_successor(timestep))
    # Terminal states earn no credit.
    paid = jnp.where(timestep.last, 0, explanation.paid)
    return eqx.tree_at(lambda e: e.terms[e.credit].values, explanation, paid)


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
    unit = 1 / config.reward_scale  # the agent learns from scaled rewards, and its model with it
    terms = {
        "c": Term(unit * c, "synthetic return c"),
        "g": Term(g, "gate g", "gate", "leaving"),
        "b": Term(unit * b, "baseline b", "line", "leaving"),
        "r_hat": Term(unit * (g * c_sum_tm1 + b), "predicted reward", "line", "leaving"),
    }
    return Explanation(terms, credit="c")


def _has_successor(timestep: TimeStep) -> Bool[Array, "time batch"]:
    """Whether a state of the first episode is left by a step of it."""
    return jnp.cumsum(timestep.last, axis=0, dtype=jnp.int32) == 0
