"""The encoder of a credit method's model, chosen by what an observation looks like."""

import dataclasses
import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.standardiser import Standardiser
from synthetic_returns.nn.convolution import as_patches
from synthetic_returns.nn.networks import ConvTorso, MlpTorso, make_torso
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key

__all__ = ["BoxEncoder", "DiscreteEncoder", "Encoder", "make_encoder"]

PATCHED_SIDE = 20  # pixels; on smaller images an MLP is as good and faster
PATCHES = {"channels": (32, 64), "kernel": 4, "stride": 4}
AT_ONCE = 1 << 22  # numbers in the images that are encoded at once: 16 MB of floats

Encoder = Callable[[Array], Array]


class BoxEncoder(eqx.Module):
    """Brings numbers to about 1 and passes them through a torso; channels come last there.

    Of many images a part is encoded at a time, and again for the gradient: what the layers make of
    the frames of whole episodes would take twelve times the memory of the frames themselves. Parts
    that fit into the caches are faster than all at once, even so.
    """

    torso: MlpTorso | ConvTorso
    scale: Float[Array, "..."] | Standardiser | None
    rank: int = eqx.field(static=True)
    channel_axis: int | None = eqx.field(static=True)

    def __call__(self, observation: Shaped[Array, "*shape"]) -> Float[Array, "*batch size"]:
        """Encodes observations with any leading axes."""
        batch = observation.shape[: observation.ndim - self.rank]
        states, at_once = math.prod(batch), self._at_once(observation)
        if at_once is None or states <= at_once:
            return self._encode(observation)
        each = observation.reshape(states, *observation.shape[len(batch) :])
        # Not the method itself, which JAX would hash, and arrays have no hash.
        encode = jax.checkpoint(lambda x: self._encode(x))
        encoded = jax.lax.map(encode, each, batch_size=at_once)
        return encoded.reshape(*batch, -1)

    def _at_once(self, observation: Shaped[Array, "*shape"]) -> int | None:
        """How many observations are encoded together; None for all."""
        torso = self.torso
        if not isinstance(torso, ConvTorso) or not all(as_patches(*w) for w in torso.windows):
            return None  # nothing is gained, or a convolution would be slow in a loop
        return max(1, AT_ONCE // math.prod(observation.shape[observation.ndim - self.rank :]))

    def _encode(self, observation: Shaped[Array, "*shape"]) -> Float[Array, "*batch size"]:
        x = observation
        if isinstance(self.scale, Standardiser):
            x = self.scale(x)
        elif self.scale is not None:
            scale = jax.lax.stop_gradient(self.scale)  # a property of the space, not a parameter
            x = x.astype(jnp.float32) * jnp.broadcast_to(scale, x.shape)
        if self.channel_axis is not None:
            x = jnp.moveaxis(x, self.channel_axis, -1)
        elif self.rank == 2 and isinstance(self.torso, ConvTorso):
            x = x[..., None]
        return self.torso(x)


class DiscreteEncoder(eqx.Module):
    """A unit for each value, then a torso."""

    torso: MlpTorso | ConvTorso
    kinds: int = eqx.field(static=True)

    def __call__(self, observation: Shaped[Array, "*batch"]) -> Float[Array, "*batch size"]:
        """Encodes numbers from 0 to ``kinds - 1``."""
        return self.torso(jax.nn.one_hot(observation, self.kinds))


def make_encoder(spec: EpisodeSpec, settings: TorsoSettings, *, key: Key) -> tuple[Encoder, int]:
    """An encoder for the observations of a kind of episodes, and how many features it makes.

    The user's own if there is one. Otherwise images, of rank 3, or 2 for grey ones, with sides of
    at least 20 pixels get two layers of 4 x 4 patches before the dense layers, unless the settings
    say which convolutions; other observations get the dense layers alone.
    """
    if spec.encoder is not None:
        # A copy, because updates are made in place and the encoder is the caller's.
        own = jax.tree.map(lambda x: jnp.array(x) if eqx.is_array(x) else x, spec.encoder)
        return own, _feature_size(own, spec)
    if spec.kinds:
        dense = TorsoSettings(sizes=settings.sizes)
        return DiscreteEncoder(make_torso((spec.kinds,), dense, key=key), spec.kinds), (
            settings.sizes[-1]
        )
    shape, channel_axis = spec.observation_shape, None
    if spec.channels_first:
        shape, channel_axis = (*shape[1:], shape[0]), -3
    elif len(shape) == 2:
        shape = (*shape, 1)
    image = len(shape) == 3
    if image and not settings.channels and min(shape[:2]) >= PATCHED_SIDE:
        settings = dataclasses.replace(settings, **PATCHES)
    torso = make_torso(
        shape if image and settings.channels else spec.observation_shape, settings, key=key
    )
    if isinstance(torso, MlpTorso):
        channel_axis = None
    scale = None if spec.scale is None else jnp.asarray(spec.scale)
    if spec.unbounded:
        scale = Standardiser.init(spec.observation_shape)
    rank = len(spec.observation_shape)
    return BoxEncoder(torso, scale, rank, channel_axis), settings.sizes[-1]


def _feature_size(encoder: Encoder, spec: EpisodeSpec) -> int:
    """How many features an encoder makes of an observation; refuses one that makes none."""
    observation = jnp.zeros((3, 2, *spec.observation_shape), spec.observation_dtype)
    shape = eqx.filter_eval_shape(encoder, observation).shape
    if len(shape) != 3 or shape[:2] != (3, 2):
        raise ValueError(
            f"the encoder turns observations of shape {observation.shape} into an array of shape "
            f"{shape}; it must keep the leading axes and end with one axis of features, here "
            "(3, 2, features): flatten what it computes for each observation."
        )
    return shape[-1]
