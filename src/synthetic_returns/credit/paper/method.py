"""The paper's method: state-associative learning on unrolls, in the agent's own update."""

import dataclasses
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from synthetic_returns.credit.auxiliary import AgentStates, AuxiliaryMethod, AuxiliaryOutcome
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.paper.association import associate
from synthetic_returns.credit.paper.memory import EpisodicMemory, memory_sum, remember
from synthetic_returns.credit.paper.sa_model import StateAssociativeModel
from synthetic_returns.types import Key
from synthetic_returns.utils.checks import check_not_negative, check_positive, check_sizes

__all__ = ["Paper"]


@dataclasses.dataclass(frozen=True)
class Paper(AuxiliaryMethod):
    """Eq. (basic_arch) with an episodic memory of the agent's features.

    ``c``, ``g`` and ``b`` are heads on the agent's torso, trained by its optimiser on its unrolls;
    the memory holds the features of all states of the running episode.
    """

    name: ClassVar[str] = "paper"
    summary: ClassVar[str] = "c, g and b in the agent's own update"
    reference: ClassVar[str] = "Raposo et al. 2021"

    cost: float = 1.0
    """Weight of the state-associative loss."""
    two_stage: bool = False
    """Fit b first, and the memory term to the residual of b."""
    capacity: int | None = None
    """States that the episodic memory holds; by default the longest episode fits."""
    current: Literal["features", "core"] = "features"
    """What g and b see of the current state: the torso's features or the recurrent core's
    output."""
    sizes: tuple[int, ...] = (256, 256)
    """Hidden units of c and b; g has the first of these layers."""

    def __post_init__(self) -> None:
        check_not_negative("cost", self.cost)
        check_sizes("sizes", self.sizes)
        if not self.sizes:
            raise ValueError("sizes is empty; c, g and b need at least one hidden layer.")
        if self.capacity is not None:
            check_positive("capacity", self.capacity)

    def init(self, feature_size: int, hidden_size: int, key: Key) -> StateAssociativeModel:
        """Draws the parameters of c, g and b."""
        return StateAssociativeModel(
            feature_size,
            hidden_size if self.current == "core" else feature_size,
            contribution_layers=self.sizes,
            gate_layers=self.sizes[:1],
            baseline_layers=self.sizes,
            key=key,
        )

    def start(self, num_envs: int, feature_size: int, max_episode_steps: int) -> EpisodicMemory:
        """An empty memory, of environments that may be in the middle of their episodes."""
        capacity = self.history(max_episode_steps)
        return EpisodicMemory.empty(num_envs, capacity, feature_size, whole=False)

    def history(self, max_episode_steps: int) -> int:
        """As many states as fit into the memory."""
        return max_episode_steps if self.capacity is None else self.capacity

    def learn(
        self, model: StateAssociativeModel, memory: EpisodicMemory, states: AgentStates
    ) -> AuxiliaryOutcome:
        """The reward of leaving each state, predicted from the states before it."""
        association = associate(
            model,
            memory,
            states.features[:-1],
            states.first[:-1],
            states.reward,
            current=self._current(states)[:-1],
            valid=~states.last[:-1],
            two_stage=self.two_stage,
            check=False,
        )
        c_last = jax.lax.stop_gradient(model.contribution(states.features[-1:]))
        return AuxiliaryOutcome(
            loss=self.cost * association.loss,
            reward=jnp.concatenate([association.c_t[1:], c_last]),
            memory=association.memory,
            metrics=association.metrics,
        )

    def remember(
        self,
        memory: EpisodicMemory,
        features: Float[Array, "states batch features"],
        first: Bool[Array, "states batch"],
    ) -> EpisodicMemory:
        """The memory after an unroll; its last state is the first of the next."""
        return remember(memory, features[:-1], first[:-1])

    def explain(self, model: StateAssociativeModel, states: AgentStates) -> Explanation:
        """c, g, b and the predicted reward."""
        current = self._current(states)
        c, g, b = (
            model.contribution(states.features),
            model.gate(current),
            model.baseline(current),
        )
        time, batch = c.shape
        empty, none_before = jnp.zeros((batch, self.history(time))), jnp.zeros(batch, jnp.int32)
        c_sum_tm1 = memory_sum(empty, c, states.first, none_before)
        terms = {
            "c": Term(c, "synthetic return c"),
            "g": Term(g, "gate g", "gate", "leaving"),
            "b": Term(b, "baseline b", "line", "leaving"),
            "r_hat": Term(g * c_sum_tm1 + b, "predicted reward", "line", "leaving"),
        }
        return Explanation(terms, credit="c")

    def of_states(
        self, model: StateAssociativeModel, features: Float[Array, "batch features"]
    ) -> Float[Array, "batch"]:
        """``c`` of any states."""
        return model.contribution(features)

    def _current(self, states: AgentStates) -> Float[Array, "states batch size"]:
        """What g and b see."""
        return states.hidden if self.current == "core" else states.features
