"""The protocol of agents: what engines, checkpoints and viewers know about each of them.

An agent is a folder. Its settings are a frozen dataclass with a name; its learner draws the
parameters, says what acts while it learns, and makes one update. ``registry`` finds both by name.
"""

from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import optax
from jaxtyping import Array, Float, Int

from synthetic_returns.credit.method import Assignment
from synthetic_returns.nn.networks import Network
from synthetic_returns.types import Key, Trajectory

__all__ = ["Agent", "AgentLearner", "LearnerState", "Metrics"]

Metrics = dict[str, Float[Array, ""]]


class Agent(eqx.Module):
    """Everything that one optimisation step trains.

    Attributes:
      network: what acts.
      credit: the model of a credit method that is trained with it, if it is.
    """

    network: Network
    credit: Any


class LearnerState(eqx.Module):
    """The state that every learner carries from update to update.

    Attributes:
      agent: the parameters.
      optimizer: the optimiser's state.
      memory: what a credit method that is trained with the agent remembers of running episodes.
      updates: how many there were.
    """

    agent: Agent
    optimizer: optax.OptState
    memory: Any
    updates: Int[Array, ""]


@runtime_checkable
class AgentLearner(Protocol):
    """The learner of an agent: pure functions, which engines compile.

    With a replay buffer, the update also takes the importance weight of each sequence, and returns
    their new priorities with the metrics (``r2d2``).
    """

    def init(self, key: Key) -> LearnerState:
        """Draws the parameters."""
        ...

    def behaviour(
        self,
        network: Network,
        num_envs: int,
        stream: int = 0,
        streams: int = 1,
        arm: Int[Array, "envs"] | None = None,
    ) -> Network:
        """What acts while the agent learns: its network, exploring.

        Args:
          network: the agent's.
          num_envs: environments stepped together, one row for each.
          stream: which batch of environments it is.
          streams: how many such batches there are.
          arm: what a bandit has chosen for each environment, if there is one (``r2d2``).
        """
        ...

    def update(
        self, state: Any, trajectory: Trajectory, assignment: Assignment | None = None
    ) -> tuple[Any, Metrics]:
        """All optimisation steps with one batch of T transitions.

        Args:
          state: from ``init`` or the update before.
          trajectory: the transitions.
          assignment: their credit, from a method that learns beside the agent; None if it is
            trained with the agent, or there is none.
        """
        ...
