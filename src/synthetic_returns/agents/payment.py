"""What an update pays the agent: the environment's rewards and the credit of a method."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from synthetic_returns.agents.agent import Metrics
from synthetic_returns.config import Config
from synthetic_returns.credit.auxiliary import AgentStates, AuxiliaryMethod
from synthetic_returns.credit.method import Assignment

__all__ = ["Payment", "pay"]


class Payment(NamedTuple):
    """The augmented rewards of an update, and what their credit adds to it.

    Attributes:
      reward: the augmented reward of arriving in each state, Eq. (reward_summation).
      loss: of a method that is trained with the agent.
      memory: what such a method remembers after these states.
      metrics: of such a method.
    """

    reward: Float[Array, "time batch"]
    loss: Float[Array, ""]
    memory: Any
    metrics: Metrics


def pay(
    config: Config, model: Any, memory: Any, states: AgentStates, assignment: Assignment | None
) -> Payment:
    """Arriving in a state earns its reward and its credit.

    Args:
      config: the method, and how credit and rewards are mixed.
      model: of a method that is trained with the agent, as the paper's state-associative learning
        is, Eq. (basic_arch).
      memory: what such a method remembers of the states before these.
      states: as the agent sees them now; their rewards are in the agent's unit.
      assignment: the credit from a method that learns beside the agent, in the environment's unit.
    """
    mix, method = config.reward, config.credit
    credit_t, loss = None, jnp.zeros(())
    metrics: Metrics = {}
    if assignment is not None and assignment.reward is not None:
        credit_t = mix.scale * assignment.reward
    elif isinstance(method, AuxiliaryMethod):
        outcome = method.learn(model, memory, states)
        credit_t = Assignment(outcome.reward).earned(states.last).reward
        loss, memory = outcome.loss, outcome.memory
        metrics = {f"credit/{name}": x for name, x in outcome.metrics.items()}
    r_t = states.reward
    r_aug_t = r_t if credit_t is None else mix.augmented(r_t, credit_t, states.last[1:])
    return Payment(r_aug_t, loss, memory, metrics)
