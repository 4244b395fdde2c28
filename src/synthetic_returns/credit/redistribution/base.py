"""What the methods that redistribute rewards over single transitions have in common."""

import abc
import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Shaped

from synthetic_returns.agents.optimizers import steady_adam
from synthetic_returns.credit.data.episode import EpisodeBatch, Segment
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.method import Assignment, CreditMethod, Metrics, Need
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.transitions import TransitionEncoder
from synthetic_returns.nn.mlp import Mlp
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key
from synthetic_returns.utils.averages import explained_variance, masked_mean, tracked, unit_of
from synthetic_returns.utils.checks import check_positive_number, check_sizes

__all__ = ["Redistribution", "RedistributionState", "RewardModel", "shares", "starts"]


class RewardModel(eqx.Module):
    """``r_hat(a, s')``: the share of the return that a transition is given.

    Attributes:
      transitions: from transitions to features.
      head: from features to the share, in standardised units.
    """

    transitions: TransitionEncoder
    head: Mlp

    def __init__(
        self, spec: EpisodeSpec, encoder: TorsoSettings, head_sizes: tuple[int, ...], *, key: Key
    ):
        """Draws the parameters.

        Args:
          spec: of the episodes.
          encoder: sizes of the encoder.
          head_sizes: hidden units of the head.
          key: consumed here.
        """
        encoder_key, head_key = jax.random.split(key)
        self.transitions = TransitionEncoder(spec, encoder, key=encoder_key)
        self.head = Mlp(self.transitions.size, head_sizes, key=head_key).silent()

    def __call__(
        self,
        observation: Shaped[Array, "states batch *shape"],
        action: Shaped[Array, "time batch *action"] | None,
        first: Bool[Array, "time batch"],
    ) -> Float[Array, "time batch"]:
        """The shares of the T transitions between T + 1 states.

        Args:
          observation: the states.
          action: what was done in the first T of them.
          first: whether a transition is the first of its episode.
        """
        return self.head(self.transitions(observation, action, first))


class RedistributionState(eqx.Module):
    """The model, and the units that it measures rewards in.

    Attributes:
      model: the shares.
      optimizer: Adam's state.
      mean: running mean of the reward of a step, which every step is given.
      variance: running mean square of what that leaves to be explained.
      updates: how many there were.
    """

    model: RewardModel
    optimizer: optax.OptState
    mean: Float[Array, ""]
    variance: Float[Array, ""]
    updates: Int[Array, ""]

    @property
    def scale(self) -> Float[Array, ""]:
        """The unit of the shares."""
        return unit_of(self.variance)

    def redistributed(
        self,
        observation: Shaped[Array, "states batch *shape"],
        action: Shaped[Array, "time batch *action"] | None,
        first: Bool[Array, "time batch"],
    ) -> Float[Array, "time batch"]:
        """``r_hat`` in the environment's units."""
        return self.mean + self.scale * self.model(observation, action, first)


def starts(episodes: EpisodeBatch) -> Bool[Array, "time batch"]:
    """The first step of each episode."""
    steps, batch = episodes.reward.shape
    time = jnp.arange(steps, dtype=jnp.int32)[:, None]
    return jnp.broadcast_to(time == 0, (steps, batch))


def shares(model: RewardModel, episodes: EpisodeBatch) -> Float[Array, "time batch"]:
    """The shares of all steps of whole episodes; 0 behind the end."""
    share = model(episodes.observation, episodes.action, starts(episodes))
    return jnp.where(episodes.valid, share, 0)


@dataclasses.dataclass(frozen=True)
class Redistribution(CreditMethod):
    """Pays ``r_hat(a, s')`` of each transition instead of its reward.

    The difference to the true return is settled at the end of the episode, so every episode pays
    its true return.
    """

    uses: ClassVar[frozenset[Need]] = frozenset({Need.ACTIONS})
    conserves: ClassVar[bool] = True

    encoder: TorsoSettings = dataclasses.field(default=TorsoSettings(sizes=(128, 64)))
    """From observations to features."""
    head_sizes: tuple[int, ...] = (64,)
    """Hidden units of r_hat."""
    learning_rate: float = 1e-3
    """Learning rate of Adam."""

    def __post_init__(self) -> None:
        check_sizes("head_sizes", self.head_sizes)
        check_positive_number("learning_rate", self.learning_rate)

    def outcome(
        self, left: Float[Array, "batch"], length: Float[Array, "batch"]
    ) -> Float[Array, "batch"]:
        """What is to be explained of an episode: its return, unless a method says otherwise.

        Args:
          left: the return of each episode, less the mean reward of all its steps.
          length: steps of each.
        """
        del length
        return left

    @abc.abstractmethod
    def loss(
        self, model: RewardModel, episodes: EpisodeBatch, outcome: Float[Array, "batch"], key: Key
    ) -> tuple[Float[Array, ""], Float[Array, "batch"]]:
        """How far the shares are from the outcomes, and what they say about the outcomes.

        Args:
          model: the shares.
          episodes: a batch of whole episodes.
          outcome: what is to be explained of each, in running standard deviations.
          key: consumed here.
        """

    def init(self, spec: EpisodeSpec, key: Key) -> RedistributionState:
        """Draws the parameters."""
        model = RewardModel(spec, self.encoder, self.head_sizes, key=key)
        optimizer = steady_adam(self.learning_rate).init(eqx.filter(model, eqx.is_array))
        zero = jnp.zeros(())
        return RedistributionState(model, optimizer, zero, jnp.ones(()), jnp.zeros((), jnp.int32))

    def learn(
        self, state: RedistributionState, episodes: EpisodeBatch, key: Key
    ) -> tuple[RedistributionState, Metrics]:
        """One step of the regression."""
        length = episodes.length.astype(jnp.float32)
        mean = tracked(state.mean, masked_mean(episodes.reward, episodes.valid), state.updates)
        left = jnp.sum(episodes.reward, axis=0) - mean * length
        outcome = self.outcome(left, length)
        variance = tracked(state.variance, jnp.mean(jnp.square(outcome)), state.updates)
        state = eqx.tree_at(lambda s: (s.mean, s.variance), state, (mean, variance))
        outcome = outcome / state.scale

        gradient = eqx.filter_value_and_grad(self.loss, has_aux=True)
        (error, predicted), grads = gradient(state.model, episodes, outcome, key)
        updates, optimizer = steady_adam(self.learning_rate).update(grads, state.optimizer)
        metrics = {
            "error": error,
            "explained_return": explained_variance(outcome, predicted, episodes.length > 0),
        }
        return (
            eqx.tree_at(
                lambda s: (s.model, s.optimizer, s.updates),
                state,
                (eqx.apply_updates(state.model, updates), optimizer, state.updates + 1),
            ),
            metrics,
        )

    def assign(
        self, state: RedistributionState, carry: None, segment: Segment
    ) -> tuple[Assignment, None]:
        """What each transition is given instead of its reward, less that reward."""
        action = None if segment.action is None else jnp.asarray(segment.action)
        first = jnp.asarray(segment.first)[:-1]
        given = state.redistributed(jnp.asarray(segment.observation), action, first)
        return Assignment(reward=given, change=-jnp.asarray(segment.reward)), carry

    def explain(self, state: RedistributionState, episodes: EpisodeBatch) -> Explanation:
        """The redistributed reward, and what of it is credit."""
        given = state.redistributed(episodes.observation, episodes.action, starts(episodes))
        start = jnp.zeros_like(given[:1])
        credit = jnp.concatenate([start, given - episodes.reward])
        terms = {
            "credit": Term(credit, "redistributed less earned"),
            "r_hat": Term(jnp.concatenate([start, given]), "redistributed reward"),
        }
        return Explanation(terms, credit="credit")
