"""Methods that share the agent's features and its optimisation step: a loss beside the agent's."""

import abc
import dataclasses
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Bool, Float

from synthetic_returns.credit.explanation import Explanation
from synthetic_returns.credit.method import Gives, Metrics, Need
from synthetic_returns.types import Key

__all__ = ["AgentStates", "AuxiliaryMethod", "AuxiliaryOutcome"]


class AgentStates(eqx.Module):
    """The T + 1 states of an unroll as the agent sees them, and the T rewards between them.

    Attributes:
      features: what the torso makes of the observations.
      hidden: what the recurrent core makes of the features; the features if there is no core.
      first: whether an episode starts there.
      last: whether one ends there.
      reward: the reward of each transition, in the units that the agent learns from.
    """

    features: Float[Array, "states batch features"]
    hidden: Float[Array, "states batch hidden"]
    first: Bool[Array, "states batch"]
    last: Bool[Array, "states batch"]
    reward: Float[Array, "time batch"]


class AuxiliaryOutcome(eqx.Module):
    """What a method makes of an unroll.

    Attributes:
      loss: to be added to the agent's.
      reward: the credit of each destination state, detached.
      memory: for the next unroll.
      metrics: diagnostics, by name.
    """

    loss: Float[Array, ""]
    reward: Float[Array, "time batch"]
    memory: Any
    metrics: Metrics


@dataclasses.dataclass(frozen=True)
class AuxiliaryMethod(abc.ABC):
    """The small sibling of ``CreditMethod``: it is trained with the agent, on the agent's unrolls.

    ``model`` are parameters that the agent's optimiser trains, ``memory`` is what is carried from
    unroll to unroll, with one row for each environment.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    reference: ClassVar[str] = ""
    needs: ClassVar[frozenset[Need]] = frozenset({Need.AGENT})
    gives: ClassVar[Gives] = Gives.REWARD

    @abc.abstractmethod
    def init(self, feature_size: int, hidden_size: int, key: Key) -> Any:
        """Draws the parameters of the model."""

    @abc.abstractmethod
    def start(self, num_envs: int, feature_size: int, max_episode_steps: int) -> Any:
        """The memory before the first step."""

    @abc.abstractmethod
    def history(self, max_episode_steps: int) -> int:
        """How many states back its memory goes: what a replay has to show of earlier steps."""

    @abc.abstractmethod
    def learn(self, model: Any, memory: Any, states: AgentStates) -> AuxiliaryOutcome:
        """The loss of an unroll, and its credit."""

    @abc.abstractmethod
    def remember(self, memory: Any, features: Array, first: Array) -> Any:
        """The memory after the states of an unroll that is not learned from, all but its last."""

    @abc.abstractmethod
    def explain(self, model: Any, states: AgentStates) -> Explanation:
        """What it says about every state of whole episodes, in the units of ``states.reward``."""

    @abc.abstractmethod
    def of_states(
        self, model: Any, features: Float[Array, "batch features"]
    ) -> Float[Array, "batch"]:
        """The credit of single states."""
