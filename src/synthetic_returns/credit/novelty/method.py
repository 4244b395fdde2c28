"""A credit method, or none, and a reward for novelty beside it."""

import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from synthetic_returns.credit.data.episode import EpisodeBatch, Segment
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.method import Assigner, Assignment, CreditMethod, Metrics, Need
from synthetic_returns.credit.novelty.settings import NoveltySettings
from synthetic_returns.credit.novelty.state import NoveltyState, train
from synthetic_returns.credit.novelty.visited import Visited, episodic_novelty, visit
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.types import Key

__all__ = ["CreditAndNovelty", "WithNovelty", "credit_state"]


class CreditAndNovelty(eqx.Module):
    """What both have learned.

    Attributes:
      credit: the credit method's state; None if there is none.
      novelty: what is new.
    """

    credit: Any
    novelty: NoveltyState


def credit_state(state: Any) -> Any:
    """What the credit method alone has learned."""
    return state.credit if isinstance(state, CreditAndNovelty) else state


@dataclasses.dataclass(frozen=True)
class WithNovelty(CreditMethod):
    """Pays what a credit method pays, and novelty.

    It is no credit: what it pays for novelty is no part of any return, so a method that conserves
    returns settles its own payments only.
    """

    name: ClassVar[str] = "novelty"
    summary: ClassVar[str] = "novelty, beside the credit of a method"
    reference: ClassVar[str] = "Badia et al. 2020"

    credit: Assigner | None = None
    """The credit method, if there is one."""
    settings: NoveltySettings = dataclasses.field(default_factory=NoveltySettings)
    """Of the novelty."""
    alpha: float = 1.0
    """The weight that the agent gives to what is paid here; novelty has one of its own."""

    @classmethod
    def beside(
        cls, credit: Assigner | None, settings: NoveltySettings, alpha: float
    ) -> "WithNovelty":
        """With the episodes of the credit method, if it learns from any."""
        replay = credit.replay if isinstance(credit, CreditMethod) else Replay(slots=128)
        return cls(replay, credit, settings, alpha)

    @property
    def needs(self) -> frozenset[Need]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the credit method needs, and actions."""
        return frozenset({Need.ACTIONS}) | (self.credit.needs if self.credit else frozenset())

    @property
    def uses(self) -> frozenset[Need]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the credit method uses."""
        return self.credit.uses if self.credit else frozenset()

    def init(self, spec: EpisodeSpec, key: Key) -> CreditAndNovelty:
        """Draws the parameters; those of the credit method are the ones that it has alone."""
        credit = self.credit.init(spec, key) if self.credit else None
        novelty = NoveltyState.init(spec, self.settings, jax.random.fold_in(key, 1))
        return CreditAndNovelty(credit, novelty)

    def start(self, state: CreditAndNovelty, num_envs: int) -> tuple[Any, Visited]:
        """What the credit method carries along, and the states so far."""
        size = state.novelty.model.between.out_features
        assert isinstance(size, int)
        visited = Visited.none(num_envs, self.settings.capacity, size)
        return self.credit.start(state.credit, num_envs) if self.credit else None, visited

    def learn(
        self, state: CreditAndNovelty, episodes: EpisodeBatch, key: Key
    ) -> tuple[CreditAndNovelty, Metrics]:
        """One update of each."""
        novelty, metrics = train(state.novelty, episodes, self.settings)
        credit = state.credit
        if isinstance(self.credit, CreditMethod):
            credit, of_credit = self.credit.learn(credit, episodes, key)
            metrics |= of_credit
        return CreditAndNovelty(credit, novelty), metrics

    def examine(self, state: CreditAndNovelty, episodes: EpisodeBatch) -> CreditAndNovelty:
        """Lets the credit method look at new episodes."""
        if not isinstance(self.credit, CreditMethod):
            return state
        return CreditAndNovelty(self.credit.examine(state.credit, episodes), state.novelty)

    def pay(
        self, state: CreditAndNovelty, carry: Any, segment: Segment, stride: int = 1
    ) -> tuple[Assignment, Any]:
        """What the credit method pays, settled if it conserves, and what is new."""
        (own, visited), advanced = carry
        novelty, visited = self.novelty(state.novelty, visited, segment)
        paid = Assignment(self.settings.weight / self.alpha * novelty)
        paid = paid.earned(jnp.asarray(segment.last))
        if self.credit:
            carry = own, advanced
            credit, (own, advanced) = self.credit.pay(state.credit, carry, segment, stride)
            paid = Assignment(paid.reward + credit.reward)  # pyright: ignore
        return paid, ((own, visited), advanced)

    def novelty(
        self, state: NoveltyState, visited: Visited, segment: Segment
    ) -> tuple[Float[Array, "time batch"], Visited]:
        """How new each state is that is arrived in: 1 if no state so far is near."""
        observation = jnp.asarray(segment.observation)
        embedding = state.model.embedding(observation)
        first = jnp.asarray(segment.first)
        square, visited = visit(visited, embedding, first, self.settings.neighbours)
        new = episodic_novelty(square, state.distance)
        return new * state.modulator(observation[1:], self.settings.most), visited

    def assign(
        self, state: CreditAndNovelty, carry: Any, segment: Segment
    ) -> tuple[Assignment, Any]:
        """The credit alone."""
        if self.credit is None:
            return Assignment(jnp.zeros_like(jnp.asarray(segment.reward))), carry
        credit, own = self.credit.assign(state.credit, carry[0], segment)
        return credit, (own, carry[1])

    def explain(self, state: CreditAndNovelty, episodes: EpisodeBatch) -> Explanation:
        """What the credit method says."""
        if self.credit is None:
            nothing = jnp.zeros(episodes.observation.shape[:2])
            return Explanation({"credit": Term(nothing, "no credit")}, "credit")
        return self.credit.explain(state.credit, episodes)

    def report(self, state: CreditAndNovelty) -> Metrics:
        """What the credit method reports, and how far apart near states are."""
        report = self.credit.report(state.credit) if self.credit else {}
        return {**report, "novelty_distance": state.novelty.distance}
