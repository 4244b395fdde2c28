"""The state-associative model on whole episodes: an encoder of its own, and c, b and the gate."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped

from synthetic_returns.credit.encoders import Encoder, make_encoder
from synthetic_returns.credit.episodic.settings import EpisodicSettings
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.nn.clock import clock_size, time_features
from synthetic_returns.nn.mlp import Mlp
from synthetic_returns.types import Key
from synthetic_returns.utils.averages import masked_mean

__all__ = ["EpisodicModel", "Prediction"]


class Prediction(eqx.Module):
    """What the model says about every step of a batch of episodes, in standardised rewards."""

    c: Float[Array, "time batch"]
    g: Float[Array, "time batch"]
    b: Float[Array, "time batch"]
    c_mean: Float[Array, ""]
    c_rest: Float[Array, ""]
    memory: Float[Array, "time batch"]
    variance: Float[Array, "time batch"]


class EpisodicModel(eqx.Module):
    """c, g and b on an encoder of their own.

    Attributes:
      encoder: observation to features.
      c: features to contribution.
      b: features and episode time, or what else the settings let it see, to the expected reward.
      g: features and episode time to the gate: its logit, or, before a softplus, the variance that
        b leaves.
      offset: features and episode time to what the sum of c is measured from; only in two stages,
        where b is not free to be it.
      settings: what is switched on.
      max_steps: the largest number of states with a successor in an episode.
    """

    encoder: Encoder
    c: Mlp
    b: Mlp
    g: Mlp
    offset: Mlp | None
    settings: EpisodicSettings = eqx.field(static=True)
    max_steps: int = eqx.field(static=True)

    def __init__(self, spec: EpisodeSpec, settings: EpisodicSettings, *, key: Key):
        """Draws the parameters.

        Args:
          spec: of the episodes.
          settings: the choices.
          key: consumed here.
        """
        encoder_key, c_key, b_key, g_key, offset_key = jax.random.split(key, 5)
        self.encoder, features = make_encoder(spec, settings.encoder, key=encoder_key)
        current = features if settings.current == "state" else 0
        current += (clock_size(spec.max_steps) if settings.time_features else 0) + settings.end
        self.c = Mlp(features, settings.head_sizes, key=c_key)
        self.b = Mlp(current, settings.head_sizes, key=b_key)
        self.g = Mlp(current, settings.head_sizes, key=g_key)
        self.offset = None
        if settings.two_stage:
            self.offset = Mlp(current, settings.head_sizes, key=offset_key)
        self.settings = settings
        self.max_steps = spec.max_steps

    def contribution(self, observation: Shaped[Array, "*shape"]) -> Float[Array, "*batch"]:
        """``c`` of any states, before centring."""
        return self.c(self.encoder(observation))

    def predict(
        self,
        observation: Shaped[Array, "time batch *observation"],
        valid: Bool[Array, "time batch"],
        gate_scale: Float[Array, ""],
        c_mean: Float[Array, ""] | None = None,
    ) -> Prediction:
        """Eq. (basic_arch) on whole episodes.

        Args:
          observation: the states.
          valid: which of them exist.
          gate_scale: the variance at which the variance gate is fully open.
          c_mean: the mean of c, for centring; None takes that of these episodes.
        """
        features = self.encoder(observation)
        past = features if self.settings.encoder_gradient else jax.lax.stop_gradient(features)
        c = self.c(past)
        c_mean = masked_mean(c, valid) if c_mean is None else c_mean
        if self.settings.centred:
            c = c - c_mean
        c_rest = jnp.nanmedian(jnp.where(valid, c, jnp.nan))
        c = jnp.where(valid, c, 0)
        c_sum_tm1 = jnp.cumsum(c, axis=0) - c

        current = self._current(features, valid)
        b = self.b(current)
        gate_output = self.g(current)
        variance = jax.nn.softplus(gate_output)
        if self.settings.gate == "variance":
            g = jnp.clip(jax.lax.stop_gradient(variance) / gate_scale, 0, 1)
        elif self.settings.gate == "end":
            g = last_valid(valid).astype(c.dtype)
        else:
            g = jax.nn.sigmoid(gate_output)
        # What b leaves has mean zero in every current state; so must what explains it.
        if self.offset is not None:
            origin = current if self.settings.encoder_gradient else jax.lax.stop_gradient(current)
            c_sum_tm1 = c_sum_tm1 - self.offset(origin)
        return Prediction(
            c=c, g=g, b=b, c_mean=c_mean, c_rest=c_rest, memory=g * c_sum_tm1, variance=variance
        )

    def _current(
        self, features: Float[Array, "time batch features"], valid: Bool[Array, "time batch"]
    ) -> Float[Array, "time batch current"]:
        """What g, b and the offset see."""
        seen = [features] if self.settings.current == "state" else []
        if self.settings.time_features:
            time = jnp.arange(valid.shape[0], dtype=jnp.int32)
            clock = time_features(time, self.max_steps)[:, None]
            seen.append(jnp.broadcast_to(clock, (*valid.shape, clock.shape[-1])))
        if self.settings.end:
            seen.append(last_valid(valid)[..., None].astype(features.dtype))
        return jnp.concatenate(seen, axis=-1)


def last_valid(valid: Bool[Array, "time batch"]) -> Bool[Array, "time batch"]:
    """The last step of each episode."""
    goes_on = jnp.concatenate([valid[1:], jnp.zeros_like(valid[:1])])
    return valid & ~goes_on
