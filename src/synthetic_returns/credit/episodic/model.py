"""The state-associative model on whole episodes: an encoder of its own, and c, b and the gate."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped

from synthetic_returns.credit.episodic.options import EpisodicOptions
from synthetic_returns.credit.paper.sa_model import Mlp
from synthetic_returns.nn.clock import clock_size, time_features
from synthetic_returns.nn.networks import make_torso, unit_scale
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
      b: features and episode time, or what else the options let it see, to the expected reward.
      g: features and episode time to the gate: its logit, or, before a softplus, the variance that
        b leaves.
      offset: features and episode time to what the sum of c is measured from; only in two stages,
        where b is not free to be it.
      options: what is switched on.
    """

    encoder: Callable[[Array], Array]
    c: Mlp
    b: Mlp
    g: Mlp
    offset: Mlp | None
    options: EpisodicOptions = eqx.field(static=True)
    longest: int = eqx.field(static=True)

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        longest: int,
        options: EpisodicOptions,
        *,
        key: Key,
        encoder: Callable[[Array], Array] | None = None,
        dtype: Any = jnp.float32,
    ):
        """Draws the parameters.

        Args:
          observation_shape: shape of one observation, or of what the options let be seen of it.
          longest: the largest number of states with a successor in an episode.
          options: the choices.
          key: consumed here.
          encoder: a pytree of parameters that maps observations with any leading axes to features;
            one of the kind and size that the options say unless given.
          dtype: of the observations that the encoder gets.
        """
        if options.changes:
            observation_shape = _changes_shape(observation_shape)
        encoder_key, c_key, b_key, g_key, offset_key = jax.random.split(key, 5)
        if encoder is None:
            encoder = make_torso(
                observation_shape,
                options.channels,
                options.encoder_sizes,
                kernel=options.kernel,
                stride=options.stride,
                patches=options.patches,
                key=encoder_key,
            )
            features = options.encoder_sizes[-1]
        else:
            features = _feature_size(encoder, observation_shape, dtype)
        self.encoder = encoder
        current = features if options.current == "state" else 0
        current += (clock_size(longest) if options.time_features else 0) + options.end
        self.c = Mlp(features, options.head_sizes, key=c_key)
        self.b = Mlp(current, options.head_sizes, key=b_key)
        self.g = Mlp(current, options.head_sizes, key=g_key)
        self.offset = None
        if options.two_stage:
            self.offset = Mlp(current, options.head_sizes, key=offset_key)
        self.options = options
        self.longest = longest

    def contribution(self, observation: Shaped[Array, "*shape"]) -> Float[Array, "*batch"]:
        """``c`` of any states, before centring."""
        return self.c(self._features(observation))

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
        features = self._features(observation)
        past = features if self.options.encoder_gradient else jax.lax.stop_gradient(features)
        c = self.c(past)
        c_mean = masked_mean(c, valid) if c_mean is None else c_mean
        if self.options.centred:
            c = c - c_mean
        c_rest = jnp.nanmedian(jnp.where(valid, c, jnp.nan))
        c = jnp.where(valid, c, 0)
        c_sum_tm1 = jnp.cumsum(c, axis=0) - c

        current = self._current(features, valid)
        b = self.b(current)
        gate_output = self.g(current)
        variance = jax.nn.softplus(gate_output)
        if self.options.gate == "variance":
            g = jnp.clip(jax.lax.stop_gradient(variance) / gate_scale, 0, 1)
        elif self.options.gate == "end":
            g = last_valid(valid).astype(c.dtype)
        else:
            g = jax.nn.sigmoid(gate_output)
        # What b leaves has mean zero in every current state; so must what explains it.
        if self.offset is not None:
            origin = current if self.options.encoder_gradient else jax.lax.stop_gradient(current)
            c_sum_tm1 = c_sum_tm1 - self.offset(origin)
        return Prediction(
            c=c, g=g, b=b, c_mean=c_mean, c_rest=c_rest, memory=g * c_sum_tm1, variance=variance
        )

    def _features(self, observation: Shaped[Array, "*shape"]) -> Float[Array, "*batch features"]:
        if self.options.changes:
            observation = jnp.diff(unit_scale(observation), axis=-1)
        return self.encoder(observation)

    def _current(
        self, features: Float[Array, "time batch features"], valid: Bool[Array, "time batch"]
    ) -> Float[Array, "time batch current"]:
        """What g, b and the offset see."""
        seen = [features] if self.options.current == "state" else []
        if self.options.time_features:
            time = jnp.arange(valid.shape[0], dtype=jnp.int32)
            clock = time_features(time, self.longest)[:, None]
            seen.append(jnp.broadcast_to(clock, (*valid.shape, clock.shape[-1])))
        if self.options.end:
            seen.append(last_valid(valid)[..., None].astype(features.dtype))
        return jnp.concatenate(seen, axis=-1)


def last_valid(valid: Bool[Array, "time batch"]) -> Bool[Array, "time batch"]:
    """The last step of each episode."""
    goes_on = jnp.concatenate([valid[1:], jnp.zeros_like(valid[:1])])
    return valid & ~goes_on


def _changes_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of what changed from frame to frame of an observation."""
    if len(shape) != 3 or shape[-1] < 2:
        raise ValueError(
            f"changes is True and an observation has shape {shape}; there are changes only between "
            "the frames of an image of shape (height, width, frames): show at least 2 frames, or "
            "set changes to False."
        )
    return (*shape[:-1], shape[-1] - 1)


def _feature_size(
    encoder: Callable[[Array], Array], observation_shape: tuple[int, ...], dtype: Any
) -> int:
    """How many features an encoder makes of an observation; refuses one that makes none."""
    observation = jnp.zeros((3, 2, *observation_shape), dtype)
    shape = eqx.filter_eval_shape(encoder, observation).shape
    if len(shape) != 3 or shape[:2] != (3, 2):
        raise ValueError(
            f"the encoder turns observations of shape {observation.shape} into an array of shape "
            f"{shape}; it must keep the leading axes and end with one axis of features, here "
            "(3, 2, features): flatten what it computes for each observation."
        )
    return shape[-1]
