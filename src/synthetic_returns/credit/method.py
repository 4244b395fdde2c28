"""The protocol of credit methods: what each can be asked for, what it needs and what it gives.

A method is a frozen dataclass, and its fields are its settings. What it has learned is a separate
pytree, its state, so that every function here is pure and can be compiled. The driver does the
rest: it follows streams of steps, keeps episodes, trains, and asks for credit.

``CreditMethod`` is what nearly all derive from; ``Assigner`` is the half of it that learns nothing.
"""

import abc
import dataclasses
import enum
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from synthetic_returns.credit.data.episode import EpisodeBatch, Segment
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.explanation import Explanation
from synthetic_returns.credit.settlement import at_ends, settled
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.types import Key

__all__ = ["Assigner", "Assignment", "CreditMethod", "Gives", "Metrics", "Need"]

Metrics = dict[str, Float[Array, ""]]


class Need(enum.StrEnum):
    """Data that a method requires in addition to observations and rewards."""

    ACTIONS = "actions"
    LOG_PROBS = "log-probs"
    VALUES = "values"
    WHOLE_EPISODES = "whole episodes"
    EVERY_STATE = "every state"
    CONTRIBUTIONS = "true contributions"
    AGENT = "the agent"


class Gives(enum.StrEnum):
    """What a method gives for each transition."""

    REWARD = "a reward for each state arrived in"
    ADVANTAGE = "an advantage for each action"
    NOTHING = "nothing"


class Assignment(eqx.Module):
    """The credit of the T transitions of a segment.

    Attributes:
      reward: the credit of arriving in each destination state; added to the environment's reward,
        and in its units. Where a view keeps one state in n, each of the n is paid an n-th of it.
      advantage: the advantage of each action in each source state; replaces the agent's own.
      change: credit like ``reward`` that adds up over the steps by itself, such as changes of a
        potential; it is paid as it is, however many states a view keeps.
    """

    reward: Float[Array, "time batch"] | None = None
    advantage: Float[Array, "time batch actions"] | None = None
    change: Float[Array, "time batch"] | None = None

    def shared_out(self, steps: int) -> "Assignment":
        """What each step is paid if ``steps`` of them share the credit of one kept state."""
        reward = None if self.reward is None else self.reward / steps
        if self.change is not None:
            reward = self.change if reward is None else reward + self.change
        return Assignment(reward, self.advantage)

    def earned(self, last: Bool[Array, "states batch"]) -> "Assignment":
        """The credit without terminal states and transitions between episodes: these earn nothing.

        Args:
          last: whether an episode ends in each of the T + 1 states.
        """
        from_last, to_last = last[:-1], last[1:]
        reward, advantage, change = self.reward, self.advantage, self.change
        return Assignment(
            None if reward is None else at_ends(reward, from_last | to_last),
            None if advantage is None else at_ends(advantage, from_last),
            None if change is None else at_ends(change, from_last | to_last),
        )


@dataclasses.dataclass(frozen=True)
class Assigner(abc.ABC):
    """A method that assigns credit apart from the agent's update, and does not learn from episodes.

    ``state`` is the pytree that ``init`` returns.
    """

    name: ClassVar[str]
    """Its name on the command line."""
    summary: ClassVar[str]
    """What it does, in a few words."""
    reference: ClassVar[str] = ""
    """Where it was published."""
    needs: ClassVar[frozenset[Need]] = frozenset()
    uses: ClassVar[frozenset[Need]] = frozenset()
    """Data that it uses if they are available."""
    gives: ClassVar[Gives] = Gives.REWARD
    conserves: ClassVar[bool] = False
    """Whether its rewards are advances. The end of an episode then subtracts all credit paid in
    it, so that the credit of every episode sums to 0."""

    @abc.abstractmethod
    def init(self, spec: EpisodeSpec, key: Key) -> Any:
        """Draws the parameters for episodes of this kind."""

    def start(self, state: Any, num_envs: int) -> Any:
        """The carry of running episodes before their first step, with one row for each episode."""
        del state, num_envs
        return None

    def resume(self, state: Any, time: Int[Array, "batch"]) -> Any:
        """The carry of episodes at the given time steps, if it depends on nothing but the time.

        Replay buffers use it to credit single transitions. Methods whose credit depends on more of
        the past do not define it.
        """
        raise NotImplementedError(
            f"the credit that {self.name!r} gives a transition depends on all of its episode so far"
        )

    @abc.abstractmethod
    def assign(self, state: Any, carry: Any, segment: Segment) -> tuple[Assignment, Any]:
        """The credit of a segment, and the carry after it.

        Methods that need complete episodes get each episode as one segment.

        Args:
          state: what the method has learned.
          carry: what it knows about the running episodes before the first state of the segment.
          segment: T transitions. Its last state is the first of the next segment, so the returned
            carry does not include that state.
        """

    def steps_shared(self, stride: int) -> int:
        """How many steps share the credit of one state, if a view keeps one state in ``stride``.

        Whole episodes are thinned before credit is asked for, so it is that of kept states alone.
        Running episodes are not thinned: a state that was learned from stands for those left out.
        """
        return 1 if Need.WHOLE_EPISODES in self.needs else stride

    def pay(
        self, state: Any, carry: Any, segment: Segment, stride: int = 1
    ) -> tuple[Assignment, Any]:
        """The credit that the agent is paid for a segment: assigned, and settled at episode ends.

        Args:
          state: what the method has learned.
          carry: the carry of ``assign``, and the credit paid to the running episodes so far.
          segment: as for ``assign``.
          stride: how many steps there are to each state that the method learned from.
        """
        own, advanced = carry
        first, last = jnp.asarray(segment.first), jnp.asarray(segment.last)
        credit, own = self.assign(state, own, segment)
        credit = credit.shared_out(self.steps_shared(stride)).earned(last)
        credit = jax.lax.stop_gradient(credit)
        if not self.conserves or credit.reward is None:
            return credit, (own, advanced)
        reward, advanced = settled(credit.reward, first, last, advanced)
        return Assignment(reward, credit.advantage), (own, advanced)

    @abc.abstractmethod
    def explain(self, state: Any, episodes: EpisodeBatch) -> Explanation:
        """Named terms for every state of whole episodes, the terminal one included."""

    def of_states(
        self, state: Any, observation: Shaped[Array, "batch *shape"]
    ) -> Float[Array, "batch"]:
        """The credit of single states, for methods whose credit does not depend on the past.

        Other methods return NaN.
        """
        del state
        return jnp.full(observation.shape[:1], jnp.nan)

    def report(self, state: Any) -> Metrics:
        """Diagnostics of the state, in addition to the metrics of the last update."""
        del state
        return {}


@dataclasses.dataclass(frozen=True)
class CreditMethod(Assigner):
    """A method that learns from finished episodes, apart from the agent's update.

    ``state`` is the pytree that ``init`` returns and ``learn`` updates.
    """

    replay: Replay = dataclasses.field(default_factory=Replay)
    """Replay buffer of finished episodes."""

    @abc.abstractmethod
    def learn(self, state: Any, episodes: EpisodeBatch, key: Key) -> tuple[Any, Metrics]:
        """One update on a batch of finished episodes."""

    def examine(self, state: Any, episodes: EpisodeBatch) -> Any:
        """Evaluates the method on new episodes before it trains on them, to measure its trust."""
        del episodes
        return state
