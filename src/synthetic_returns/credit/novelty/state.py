"""What novelty has learned: what actions change, what is known, and what is usual."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Shaped

from synthetic_returns.agents.optimizers import adam
from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.credit.encoders import Encoder, make_encoder
from synthetic_returns.credit.novelty.settings import NoveltySettings
from synthetic_returns.credit.novelty.visited import Visited, visit
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.nn.linear import affine
from synthetic_returns.types import Key
from synthetic_returns.utils.averages import masked_mean, masked_variance, tracked, unit_of

__all__ = ["NoveltyModel", "NoveltyState", "train"]


class NoveltyModel(eqx.Module):
    """The embedding, its inverse model, and a random network with the one that predicts it.

    Attributes:
      embedding: observation to what is compared within an episode.
      between: the embeddings of two successive states to a layer.
      action: that layer to the logits of the action between them.
      unknown: observation to random features, never trained.
      known: learns what ``unknown`` says, of the states that were seen.
    """

    embedding: Encoder
    between: eqx.nn.Linear
    action: eqx.nn.Linear
    unknown: Encoder
    known: Encoder

    def __init__(self, spec: EpisodeSpec, settings: NoveltySettings, *, key: Key):
        """Draws the parameters."""
        assert spec.num_actions is not None
        keys = jax.random.split(key, 5)
        self.embedding, size = make_encoder(spec, settings.encoder, key=keys[0])
        self.between = eqx.nn.Linear(2 * size, size, key=keys[1])
        self.action = eqx.nn.Linear(size, spec.num_actions, key=keys[2])
        self.unknown, _ = make_encoder(spec, settings.encoder, key=keys[3])
        self.known, _ = make_encoder(spec, settings.encoder, key=keys[4])

    def surprise(self, observation: Shaped[Array, "*shape"]) -> Float[Array, "*batch"]:
        """How far states are from being known, in all episodes (random network distillation)."""
        unknown = jax.lax.stop_gradient(self.unknown(observation))
        return jnp.mean(jnp.square(self.known(observation) - unknown), axis=-1)

    def action_loss(self, episodes: EpisodeBatch) -> Float[Array, ""]:
        """The cross-entropy of the actions that led from each state to the next."""
        embedding = self.embedding(episodes.observation)
        both = jnp.concatenate([embedding[:-1], embedding[1:]], axis=-1)
        logits = affine(self.action, jax.nn.relu(affine(self.between, both)))
        assert episodes.action is not None
        taken = jnp.take_along_axis(
            jax.nn.log_softmax(logits), episodes.action[..., None], axis=-1
        )[..., 0]
        return -masked_mean(taken, episodes.valid)


class NoveltyState(eqx.Module):
    """The model, and what is usual.

    Attributes:
      model: embedding and surprise.
      optimizer: Adam's state.
      distance: running mean of the squared distance from near states.
      surprise: running mean and variance.
      updates: how many there were.
    """

    model: NoveltyModel
    optimizer: optax.OptState
    distance: Float[Array, ""]
    surprise: Float[Array, "2"]
    updates: Int[Array, ""]

    @classmethod
    def init(cls, spec: EpisodeSpec, settings: NoveltySettings, key: Key) -> "NoveltyState":
        """Draws the parameters."""
        model = NoveltyModel(spec, settings, key=key)
        return cls(
            model=model,
            optimizer=adam(settings.learning_rate).init(eqx.filter(model, eqx.is_array)),
            distance=jnp.ones(()),
            surprise=jnp.zeros(2),
            updates=jnp.zeros((), jnp.int32),
        )

    def modulator(
        self, observation: Shaped[Array, "*shape"], most: float
    ) -> Float[Array, "*batch"]:
        """``1 + (surprise - mean) / deviation``, from 1 to ``most``: how new states are at all."""
        mean, variance = self.surprise
        above = (self.model.surprise(observation) - mean) / unit_of(variance)
        return jnp.where(self.updates > 0, jnp.clip(1 + above, 1, most), 1)


def train(
    state: NoveltyState, episodes: EpisodeBatch, settings: NoveltySettings
) -> tuple[NoveltyState, dict[str, Float[Array, ""]]]:
    """One update on a batch of episodes."""
    there = _states(episodes)

    def loss(model: NoveltyModel) -> tuple[Float[Array, ""], tuple[Array, Array]]:
        action_loss, surprise = model.action_loss(episodes), model.surprise(episodes.observation)
        return action_loss + masked_mean(surprise, there), (action_loss, surprise)

    grads, (action_loss, surprise) = eqx.filter_grad(loss, has_aux=True)(state.model)
    updates, optimizer = adam(settings.learning_rate).update(grads, state.optimizer)
    now = jnp.stack([masked_mean(surprise, there), masked_variance(surprise, there)])

    embedding = state.model.embedding(episodes.observation)
    first = jnp.broadcast_to(
        jnp.arange(len(there), dtype=jnp.int32)[:, None] == 0, embedding.shape[:2]
    )
    nothing = Visited.none(embedding.shape[1], settings.capacity, embedding.shape[2])
    square, _ = visit(nothing, embedding, first, settings.neighbours)
    near = jnp.isfinite(square) & episodes.valid[..., None]
    distance = masked_mean(jnp.where(near, square, 0), near)
    state = NoveltyState(
        model=eqx.apply_updates(state.model, updates),
        optimizer=optimizer,
        distance=tracked(state.distance, distance, state.updates),
        surprise=tracked(state.surprise, now, state.updates),
        updates=state.updates + 1,
    )
    return state, {"novelty_action_loss": action_loss, "novelty_surprise": now[0]}


def _states(episodes: EpisodeBatch) -> Array:
    """Which states exist, the terminal ones included."""
    time = jnp.arange(len(episodes.observation), dtype=jnp.int32)[:, None]
    return (time <= episodes.length[None]) & (episodes.length[None] > 0)
