"""SECRET: self-attention that predicts rewards gives them to the states that it looks at."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Shaped

from synthetic_returns.agents.optimizers import steady_adam
from synthetic_returns.credit.data.episode import EpisodeBatch, Segment
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.encoders import Encoder, make_encoder
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.method import Assignment, CreditMethod, Metrics, Need
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.nn.clock import clock_size, time_features
from synthetic_returns.nn.linear import affine
from synthetic_returns.nn.networks import MlpTorso
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key
from synthetic_returns.utils.averages import masked_mean, tracked
from synthetic_returns.utils.checks import check_positive, check_positive_number

__all__ = ["Secret", "SecretModel", "SecretState", "redistributed"]

RAREST = 0.01  # share of a class of signs below which it does not weigh more
SIGNS = (-1, 0, 1)


class SecretModel(eqx.Module):
    """Attention from each step to the steps so far, and the sign of the reward from what it sees.

    Attributes:
      encoder: observation to features.
      query: what a step looks for.
      key: what a step is found by.
      value: what is seen of it.
      head: a step and what it sees, to hidden units.
      sign: these to the logits of the three signs.
      max_steps: the largest number of states with a successor in an episode.
    """

    encoder: Encoder
    query: eqx.nn.Linear
    key: eqx.nn.Linear
    value: eqx.nn.Linear
    head: MlpTorso
    sign: eqx.nn.Linear
    max_steps: int = eqx.field(static=True)

    def __init__(self, spec: EpisodeSpec, encoder: TorsoSettings, width: int, *, key: Key):
        """Draws the parameters.

        Args:
          spec: of the episodes.
          encoder: sizes of the encoder.
          width: of queries, keys and values.
          key: consumed here.
        """
        keys = jax.random.split(key, 6)
        self.encoder, size = make_encoder(spec, encoder, key=keys[0])
        size += clock_size(spec.max_steps)
        self.query, self.key, self.value = (
            eqx.nn.Linear(size, width, use_bias=False, key=k) for k in keys[1:4]
        )
        self.head = MlpTorso((size + width,), (width,), key=keys[4])
        self.sign = eqx.nn.Linear(width, len(SIGNS), key=keys[5])
        self.max_steps = spec.max_steps

    def __call__(
        self,
        observation: Shaped[Array, "time batch *shape"],
        valid: Bool[Array, "time batch"],
    ) -> tuple[Float[Array, "time seen batch"], Float[Array, "time batch signs"]]:
        """The attention of each step to each, and the logits of the sign of its reward.

        Args:
          observation: the states that were left.
          valid: which steps exist.
        """
        x = self.encoder(observation)
        clock = time_features(jnp.arange(len(x), dtype=jnp.int32), self.max_steps)
        clock = jnp.broadcast_to(clock[:, None], (*x.shape[:2], clock.shape[-1]))
        x = jnp.concatenate([x, clock], axis=-1)
        query, key, value = (affine(layer, x) for layer in (self.query, self.key, self.value))
        match = jnp.einsum("tbw,kbw->tkb", query, key) / jnp.sqrt(query.shape[-1])
        so_far = jnp.tril(jnp.ones((len(x), len(x)), bool))[..., None]
        match = jnp.where(so_far & valid[None], match, -1e9)
        attention = jax.nn.softmax(match, axis=1)
        seen = jnp.einsum("tkb,kbw->tbw", attention, value)
        logits = affine(self.sign, self.head(jnp.concatenate([x, seen], axis=-1)))
        return jnp.where(so_far & valid[None] & valid[:, None], attention, 0), logits


class SecretState(eqx.Module):
    """The model and how often each sign comes.

    Attributes:
      model: the attention.
      optimizer: Adam's state.
      share: running share of each sign among the rewards.
      updates: how many there were.
    """

    model: SecretModel
    optimizer: optax.OptState
    share: Float[Array, "signs"]
    updates: Int[Array, ""]


def redistributed(
    attention: Float[Array, "time seen batch"], reward: Float[Array, "time batch"]
) -> Float[Array, "time batch"]:
    """What each step gets of later rewards: the sum over t > k of ``alpha(t, k) r_t``."""
    everything = jnp.einsum("tkb,tb->kb", attention, reward)
    own = jnp.moveaxis(jnp.diagonal(attention), -1, 0) * reward
    return everything - own


@dataclasses.dataclass(frozen=True)
class Secret(CreditMethod):
    """Self-attentional credit: a reward belongs to the states that help to predict it.

    A model with attention over the steps so far predicts the sign of each reward. When an episode
    has ended, each step gets its share of later rewards, ``sum over t > k of alpha(t, k) r_t``, as
    an advance that is subtracted at the end. An episode of T steps takes O(T^2).
    """

    name: ClassVar[str] = "secret"
    summary: ClassVar[str] = "moves rewards by attention weights"
    reference: ClassVar[str] = "Ferret et al. 2019"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.WHOLE_EPISODES})
    conserves: ClassVar[bool] = True

    replay: Replay = dataclasses.field(default=Replay(updates_per_episode=1.0))
    """The episodes that it learns from."""
    encoder: TorsoSettings = dataclasses.field(default=TorsoSettings(sizes=(128, 64)))
    """From observations to features."""
    width: int = 32
    """Length of queries, keys and values."""
    learning_rate: float = 1e-3
    """Learning rate of Adam."""

    def __post_init__(self) -> None:
        check_positive("width", self.width)
        check_positive_number("learning_rate", self.learning_rate)

    def init(self, spec: EpisodeSpec, key: Key) -> SecretState:
        """Draws the parameters."""
        model = SecretModel(spec, self.encoder, self.width, key=key)
        optimizer = steady_adam(self.learning_rate).init(eqx.filter(model, eqx.is_array))
        return SecretState(model, optimizer, jnp.zeros(len(SIGNS)), jnp.zeros((), jnp.int32))

    def learn(
        self, state: SecretState, episodes: EpisodeBatch, key: Key
    ) -> tuple[SecretState, Metrics]:
        """One step of the classification of signs, in which each sign weighs the same."""
        del key
        valid = episodes.valid
        sign = jnp.sign(episodes.reward)[..., None] == jnp.asarray(SIGNS, jnp.float32)[None, None]
        sign = sign.astype(jnp.float32)
        now = jnp.stack([masked_mean(x, valid) for x in jnp.moveaxis(sign, -1, 0)])
        share = tracked(state.share, now, state.updates)
        weight = jnp.sum(sign / jnp.maximum(share, RAREST)[None, None], axis=-1)

        def loss(model: SecretModel):
            _, logits = model(episodes.source, valid)
            log_p = jax.nn.log_softmax(logits)
            error = -jnp.sum(sign * log_p, axis=-1)
            right = jnp.argmax(logits, axis=-1) == jnp.argmax(sign, axis=-1)
            metrics = {"signs_right": masked_mean(right.astype(jnp.float32), valid)}
            return masked_mean(weight * error, valid), metrics

        grads, metrics = eqx.filter_grad(loss, has_aux=True)(state.model)
        updates, optimizer = steady_adam(self.learning_rate).update(grads, state.optimizer)
        model = eqx.apply_updates(state.model, updates)
        return SecretState(model, optimizer, share, state.updates + 1), metrics

    def assign(self, state: SecretState, carry: None, segment: Segment) -> tuple[Assignment, None]:
        """What the state arrived in gets of later rewards, in whole episodes."""
        valid = jnp.asarray(segment.valid)
        attention, _ = state.model(jnp.asarray(segment.observation)[:-1], valid)
        shares = redistributed(attention, jnp.where(valid, jnp.asarray(segment.reward), 0))
        arrived = jnp.concatenate([shares[1:], jnp.zeros_like(shares[:1])])
        return Assignment(reward=jnp.where(state.updates > 0, arrived, 0)), carry

    def explain(self, state: SecretState, episodes: EpisodeBatch) -> Explanation:
        """The shares of all states, the attention in units of reward, and the predicted signs."""
        attention, logits = state.model(episodes.source, episodes.valid)
        reward = jnp.where(episodes.valid, episodes.reward, 0)
        shares = redistributed(attention, reward)
        time, batch = reward.shape
        pairs = jnp.transpose(attention, (0, 2, 1)) * reward[..., None]
        matrix = jnp.zeros((time + 1, batch, time + 1)).at[:-1, :, :-1].set(pairs)
        p = jax.nn.softmax(logits)
        unknown = jnp.full((1, batch), jnp.nan)
        terms = {
            "share": Term(
                jnp.concatenate([shares, jnp.zeros((1, batch))]), "share of later rewards"
            ),
            "pairs": Term(matrix, "reward given by attention", "pairs", "leaving"),
            "positive": Term(
                jnp.concatenate([p[..., 2], unknown]), "chance of a reward", "gate", "leaving"
            ),
        }
        return Explanation(terms, credit="share")
