"""A reconstructive memory: states are written as codes, and read by content to predict value."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from synthetic_returns.credit.actions import ActionFeatures
from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.credit.encoders import Encoder, make_encoder
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.tvt.transport import Strengths, Weights
from synthetic_returns.nn.clock import clock_size, time_features
from synthetic_returns.nn.linear import affine
from synthetic_returns.nn.mlp import Mlp
from synthetic_returns.nn.networks import unit_scale
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key

__all__ = ["MemoryModel", "Reads", "read"]


class Reads(eqx.Module):
    """What is read at each step.

    Attributes:
      weights: ``w_t[k]`` of each head, over the steps before t.
      strengths: ``beta_t`` of each head.
      value: ``V_t``, in standardised units.
    """

    weights: Weights
    strengths: Strengths
    value: Float[Array, "time batch"]


class MemoryModel(eqx.Module):
    """The world model of a reconstructive memory agent.

    Attributes:
      encoder: observation to features.
      actions: actions to features; none where actions are not known.
      code: features, the action before and its reward, to the code ``z``.
      decoder: the code to all that it was made of.
      query: code and time to a key and a strength for each head.
      value: code, time and what was read, to the value.
      heads: reads at each step.
      max_steps: steps that the clock tells apart.
      kinds: for observations that are one of a few numbers, how many there are; else 0.
    """

    encoder: Encoder
    actions: ActionFeatures
    code: eqx.nn.Linear
    decoder: eqx.nn.Linear
    query: eqx.nn.Linear
    value: Mlp
    heads: int = eqx.field(static=True)
    max_steps: int = eqx.field(static=True)
    kinds: int = eqx.field(static=True)

    def __init__(
        self, spec: EpisodeSpec, encoder: TorsoSettings, *, code: int, heads: int, key: Key
    ):
        """Draws the parameters.

        Args:
          spec: of the episodes.
          encoder: sizes of the encoder.
          code: numbers of a code.
          heads: reads at each step.
          key: consumed here.
        """
        keys = jax.random.split(key, 5)
        self.encoder, size = make_encoder(spec, encoder, key=keys[0])
        self.actions = ActionFeatures(spec)
        self.heads, self.max_steps = heads, spec.max_steps
        self.kinds = spec.kinds
        beside = self.actions.size + 1
        pixels = spec.kinds or math.prod(spec.observation_shape)
        clock = clock_size(self.max_steps)
        self.code = eqx.nn.Linear(size + beside, code, key=keys[1])
        self.decoder = eqx.nn.Linear(code, pixels + beside, key=keys[2])
        self.query = eqx.nn.Linear(code + clock, heads * (code + 1), key=keys[3])
        self.value = Mlp(code + clock + heads * code, (code,), key=keys[4]).silent()

    def shown(
        self, episodes: EpisodeBatch, scale: Float[Array, ""]
    ) -> Float[Array, "time batch shown"]:
        """What codes are made of: the observation, the action before it, and its reward.

        Args:
          episodes: whole episodes.
          scale: the unit of rewards.
        """
        seen = self._pixels(episodes)
        earned = episodes.reward[..., None] / scale
        beside = jnp.concatenate([self.actions(episodes.action, seen), earned], axis=-1)
        beside = jnp.concatenate([jnp.zeros_like(beside[:1]), beside[:-1]])
        return jnp.concatenate([seen, beside], axis=-1)

    def codes(
        self, episodes: EpisodeBatch, shown: Float[Array, "time batch shown"]
    ) -> Float[Array, "time batch code"]:
        """The codes of the states that were left.

        Args:
          episodes: whole episodes.
          shown: what ``shown`` says about them.
        """
        beside = shown[..., -(self.actions.size + 1) :]
        return affine(self.code, jnp.concatenate([self.encoder(episodes.source), beside], axis=-1))

    def __call__(
        self, code: Float[Array, "time batch code"], valid: Bool[Array, "time batch"]
    ) -> Reads:
        """Reads the codes of earlier states at every step, and predicts the value.

        Args:
          code: of all states of whole episodes.
          valid: which of them exist.
        """
        time, batch, size = code.shape
        clock = time_features(jnp.arange(time, dtype=jnp.int32), self.max_steps)
        clock = jnp.broadcast_to(clock[:, None], (time, batch, clock.shape[-1]))
        now = jnp.concatenate([code, clock], axis=-1)
        asked = jnp.reshape(affine(self.query, now), (time, batch, self.heads, size + 1))
        strengths = jax.nn.softplus(asked[..., -1])
        weights, found = read(asked[..., :-1], strengths, code, valid)
        found = jnp.reshape(found, (time, batch, -1))
        value = self.value(jnp.concatenate([now, found], axis=-1))
        return Reads(weights, strengths, value)

    def reconstructed(
        self, code: Float[Array, "time batch code"]
    ) -> Float[Array, "time batch shown"]:
        """What the codes still tell of what they were made of."""
        return affine(self.decoder, code)

    def _pixels(self, episodes: EpisodeBatch) -> Float[Array, "time batch pixels"]:
        """Observations as the encoder sees them, as vectors."""
        x = episodes.source
        if self.kinds:
            return jax.nn.one_hot(x, self.kinds)
        x = unit_scale(x).astype(jnp.float32)
        return jnp.reshape(x, (*x.shape[:2], -1))


def read(
    key: Float[Array, "time batch heads code"],
    strength: Strengths,
    memory: Float[Array, "time batch code"],
    valid: Bool[Array, "time batch"],
) -> tuple[Weights, Float[Array, "time batch heads code"]]:
    """Reads by content: ``w_t[k] = softmax over k < t of beta_t cos(key_t, z_k)``.

    Args:
      key: what each head looks for at each step.
      strength: ``beta``.
      memory: ``z``, one row for each step.
      valid: which steps exist.

    Returns:
      The weights, and the weighted mean of the rows. At the first step there is nothing to read.
    """
    match = jnp.einsum("tbhc,kbc->bhtk", strength[..., None] * _unit(key), _unit(memory))
    before = jnp.tril(jnp.ones((len(memory), len(memory)), bool), -1)
    there = (before[None] & valid.T[:, None] & valid.T[..., None])[:, None]
    weights = jax.nn.softmax(jnp.where(there, match, -1e9), axis=-1)
    weights = jnp.where(there, weights, 0)
    return weights, jnp.einsum("bhtk,kbc->tbhc", weights, memory)


def _unit(x: Float[Array, "*batch code"]) -> Float[Array, "*batch code"]:
    """Vectors of length 1."""
    return x * jax.lax.rsqrt(jnp.maximum(jnp.sum(jnp.square(x), axis=-1, keepdims=True), 1e-12))
