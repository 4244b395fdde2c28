"""What the hindsight methods share: they learn who acted how before what, and give advantages."""

import abc
import dataclasses
import functools
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from synthetic_returns.agents.optimizers import steady_adam
from synthetic_returns.credit.data.episode import EpisodeBatch, Segment, whole_episodes
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.hindsight_actions.model import (
    Given,
    HindsightModel,
    cross_entropy,
    hindsight_log_probs,
    taken,
)
from synthetic_returns.credit.hindsight_actions.outcomes import (
    Outcomes,
    RewardClasses,
)
from synthetic_returns.credit.method import Assignment, CreditMethod, Gives, Metrics, Need
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key
from synthetic_returns.utils.averages import masked_mean, tracked, unit_of
from synthetic_returns.utils.checks import check_positive, check_positive_number

__all__ = [
    "HindsightActions",
    "HindsightState",
    "actions_term",
    "log_policy",
    "returns_to_come",
    "taken_action",
]

LEAST = -20.0  # log-probability; an action that is never taken has no hindsight
MOST_DEVIATIONS = 10.0  # of a return from the mean; what lies further out looks alike


class HindsightState(eqx.Module):
    """The model and what it knows about rewards, which are in the environment's units.

    Attributes:
      model: the hindsight distribution and the rewards of actions.
      optimizer: Adam's state.
      classes: the rewards that were seen.
      square: running mean square of rewards.
      return_mean: running mean of the returns to come.
      return_variance: running mean of their squared distance from it.
      updates: how many there were.
    """

    model: HindsightModel
    optimizer: optax.OptState
    classes: RewardClasses
    square: Float[Array, ""]
    return_mean: Float[Array, ""]
    return_variance: Float[Array, ""]
    updates: Int[Array, ""]

    @property
    def scale(self) -> Float[Array, ""]:
        """The unit in which the model measures rewards."""
        return unit_of(self.square)

    def standardised(self, to_come: Float[Array, "time batch"]) -> Float[Array, "time batch"]:
        """Returns to come, as the model sees them.

        Before different returns have been seen, the unit is tiny: a first reward would overflow.
        """
        standard = (to_come - self.return_mean) / unit_of(self.return_variance)
        return jnp.clip(standard, -MOST_DEVIATIONS, MOST_DEVIATIONS)


@dataclasses.dataclass(frozen=True)
class HindsightActions(CreditMethod):
    """Learns the hindsight distribution from finished episodes; gives advantages of all actions."""

    needs: ClassVar[frozenset[Need]] = frozenset(
        {Need.WHOLE_EPISODES, Need.ACTIONS, Need.LOG_PROBS}
    )
    gives: ClassVar[Gives] = Gives.ADVANTAGE

    replay: Replay = dataclasses.field(default=Replay(slots=512, updates_per_episode=1.0))
    """The episodes that it learns from."""
    encoder: TorsoSettings = dataclasses.field(default=TorsoSettings(sizes=(128, 64)))
    """From observations to features."""
    rank: int = 16
    """Length of the vectors for states and outcomes, whose inner product gives the logits."""
    most: int = 64
    """Largest number of outcomes of an episode: the distinct rewards, or the steps that paid
    most. Time and memory grow in proportion."""
    learning_rate: float = 1e-3
    """Learning rate of Adam."""

    def __post_init__(self) -> None:
        check_positive("rank", self.rank)
        check_positive("most", self.most)
        check_positive_number("learning_rate", self.learning_rate)

    def starting(self, spec: EpisodeSpec, given: Given, key: Key) -> HindsightState:
        """Nothing is known yet.

        Args:
          spec: of the episodes.
          given: what describes an outcome.
          key: consumed here.
        """
        model = HindsightModel(
            spec, self.encoder, given=given, classes=self.most, rank=self.rank, key=key
        )
        return HindsightState(
            model=model,
            optimizer=steady_adam(self.learning_rate).init(eqx.filter(model, eqx.is_array)),
            classes=RewardClasses.none(self.most),
            square=jnp.zeros(()),
            return_mean=jnp.zeros(()),
            return_variance=jnp.zeros(()),
            updates=jnp.zeros((), jnp.int32),
        )

    @abc.abstractmethod
    def outcomes(
        self, state: HindsightState, model: HindsightModel, episodes: EpisodeBatch, key: Key | None
    ) -> Outcomes:
        """What came after each step of whole episodes.

        Args:
          state: what is known about rewards.
          model: what sees the outcomes; differentiated where they are trained on.
          episodes: that are over.
          key: to draw the outcomes that are trained on; None for those that are given credit for.
        """

    def learn(
        self, state: HindsightState, episodes: EpisodeBatch, key: Key
    ) -> tuple[HindsightState, Metrics]:
        """One step of both regressions: the hindsight distribution and the rewards of actions."""
        state = self.measured(state, episodes)

        def loss(model: HindsightModel):
            hindsight, metrics = self.hindsight_loss(state, model, episodes, key)
            rewards, _ = model.rewards(episodes.source)
            error = taken(rewards, taken_action(episodes)) - episodes.reward / state.scale
            reward_loss = masked_mean(jnp.square(error), episodes.valid)
            metrics |= {"hindsight_loss": hindsight, "reward_loss": reward_loss}
            return hindsight + reward_loss, metrics

        grads, metrics = eqx.filter_grad(loss, has_aux=True)(state.model)
        updates, optimizer = steady_adam(self.learning_rate).update(grads, state.optimizer)
        return (
            eqx.tree_at(
                lambda s: (s.model, s.optimizer, s.updates),
                state,
                (eqx.apply_updates(state.model, updates), optimizer, state.updates + 1),
            ),
            metrics,
        )

    def measured(self, state: HindsightState, episodes: EpisodeBatch) -> HindsightState:
        """With what a batch of episodes says about the size of rewards and returns."""
        valid, track = episodes.valid, functools.partial(tracked, count=state.updates)
        to_come = returns_to_come(episodes)
        mean = track(state.return_mean, masked_mean(to_come, valid))
        spread = masked_mean(jnp.square(to_come - mean), valid)
        return eqx.tree_at(
            lambda s: (s.square, s.return_mean, s.return_variance),
            state,
            (
                track(state.square, masked_mean(jnp.square(episodes.reward), valid)),
                mean,
                track(state.return_variance, spread),
            ),
        )

    def hindsight_loss(
        self, state: HindsightState, model: HindsightModel, episodes: EpisodeBatch, key: Key
    ) -> tuple[Float[Array, ""], Metrics]:
        """The cross-entropy of the actions given each outcome, and how much outcomes tell."""
        outcomes = self.outcomes(state, model, episodes, key)
        log_pi, action = log_policy(episodes), taken_action(episodes)
        log_h = hindsight_log_probs(model.phi(episodes.source), log_pi, outcomes)
        loss = cross_entropy(log_h, action, outcomes.count)
        said = jnp.broadcast_to(log_pi[:, None], log_h.shape)
        return loss, {"told_by_outcomes": cross_entropy(said, action, outcomes.count) - loss}

    def examine(self, state: HindsightState, episodes: EpisodeBatch) -> HindsightState:
        """Takes note of rewards that were never seen before."""
        return eqx.tree_at(lambda s: s.classes, state, state.classes.seen(episodes))

    def assign(
        self, state: HindsightState, carry: None, segment: Segment
    ) -> tuple[Assignment, None]:
        """The advantages of all actions in whole episodes."""
        credit = sum(self.parts(state, whole_episodes(segment)))
        return Assignment(advantage=jnp.asarray(credit)), carry

    def parts(
        self, state: HindsightState, episodes: EpisodeBatch
    ) -> tuple[Float[Array, "time batch actions"], Float[Array, "time batch actions"]]:
        """The advantages by way of the reward of the step itself, and by way of later rewards."""
        pi = jnp.exp(log_policy(episodes))
        rewards, _ = state.model.rewards(episodes.source)
        usual = jnp.sum(pi * rewards, axis=-1, keepdims=True)
        coefficient, outcomes = self.coefficients(state, episodes)
        future = jnp.einsum("tnb,tnba->tba", outcomes.reward, coefficient)
        return state.scale * (rewards - usual), future

    def coefficients(
        self, state: HindsightState, episodes: EpisodeBatch
    ) -> tuple[Float[Array, "time outcomes batch actions"], Outcomes]:
        """``h(a | s_t, u_n) / pi(a | s_t) - 1``: how much likelier an action makes an outcome."""
        outcomes = self.outcomes(state, state.model, episodes, None)
        log_pi = log_policy(episodes)
        log_h = hindsight_log_probs(state.model.phi(episodes.source), log_pi, outcomes)
        return jnp.expm1(log_h - log_pi[:, None]), outcomes

    def explain(self, state: HindsightState, episodes: EpisodeBatch) -> Explanation:
        """The advantages, their two parts, and which step made which reward likelier."""
        now, future = self.parts(state, episodes)
        terms = {
            "advantage": actions_term(now + future, "advantage of each action"),
            "now": actions_term(now, "of the step's own reward"),
            "future": actions_term(future, "of later rewards"),
            "pairs": self.pairs(state, episodes),
        }
        return Explanation(terms, credit="advantage")

    def pairs(self, state: HindsightState, episodes: EpisodeBatch) -> Term:
        """What the action of each step contributes to the reward of each later one."""
        coefficient, outcomes = self.coefficients(state, episodes)
        of_taken = taken(coefficient, taken_action(episodes))
        time, batch = outcomes.index.shape
        rows = jnp.arange(batch, dtype=jnp.int32)[None]
        # [rewarded step, batch, acting step]
        said = of_taken[:, jnp.maximum(outcomes.index, 0), rows]
        said = jnp.moveaxis(said, 0, 2) * episodes.reward[..., None]
        times = jnp.arange(time, dtype=jnp.int32)
        exists = (times[:, None] > times[None])[:, None] & (outcomes.index >= 0)[..., None]
        said = jnp.where(exists & episodes.valid[..., None], said, 0)
        matrix = jnp.zeros((time + 1, batch, time + 1)).at[:-1, :, :-1].set(said)
        return Term(matrix, "contribution of an action to a reward", "pairs", "leaving")

    def report(self, state: HindsightState) -> Metrics:
        """How many different rewards were seen."""
        return {"reward_classes": state.classes.known.astype(jnp.float32)}


def actions_term(values: Float[Array, "time batch actions"], label: str) -> Term:
    """A number for each action, of the states that were left; none of the terminal state."""
    values = jnp.concatenate([values, jnp.zeros_like(values[:1])])
    return Term(values, label, "actions", "leaving")


def returns_to_come(episodes: EpisodeBatch) -> Float[Array, "time batch"]:
    """The sum of the rewards from each step on."""
    reward = jnp.where(episodes.valid, episodes.reward, 0)
    return jnp.cumsum(reward[::-1], axis=0)[::-1]


def log_policy(episodes: EpisodeBatch) -> Float[Array, "time batch actions"]:
    """The log-probabilities of the policy that acted."""
    assert episodes.log_probs is not None
    return jnp.maximum(jax.nn.log_softmax(episodes.log_probs), LEAST)


def taken_action(episodes: EpisodeBatch) -> Int[Array, "time batch"]:
    """What was done."""
    assert episodes.action is not None
    return episodes.action
