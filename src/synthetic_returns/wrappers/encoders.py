"""The encoder of the wrappers' model, chosen by what an observation looks like."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from synthetic_returns.credit.episodic.options import EpisodicOptions
from synthetic_returns.nn.networks import ConvTorso, MlpTorso, make_torso
from synthetic_returns.types import Key
from synthetic_returns.wrappers.observations import ObservationFormat

__all__ = ["BoxEncoder", "DiscreteEncoder", "make_encoder"]

PATCHED_SIDE = 20  # pixels; on smaller images an MLP is as good and faster
PATCHES = {"channels": (32, 64), "kernel": 4, "stride": 4}


class BoxEncoder(eqx.Module):
    """Scales numbers to about 1 and passes them through a torso; channels come last there."""

    torso: MlpTorso | ConvTorso
    scale: Float[Array, "..."]
    rank: int = eqx.field(static=True)
    channel_axis: int | None = eqx.field(static=True)

    def __call__(self, observation: Shaped[Array, "*shape"]) -> Float[Array, "*batch size"]:
        """Encodes observations with any leading axes."""
        scale = jax.lax.stop_gradient(self.scale)  # a property of the space, not a parameter
        x = observation.astype(jnp.float32) * jnp.broadcast_to(scale, observation.shape)
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


def make_encoder(
    observed: ObservationFormat, options: EpisodicOptions, *, key: Key
) -> BoxEncoder | DiscreteEncoder:
    """The encoder for observations of a format.

    Images, of rank 3, or 2 for grey ones, with sides of at least 20 pixels get two layers of 4 x 4
    patches before the dense layers, other observations the dense layers alone. ``channels``,
    ``kernel`` and ``stride`` of the options, if channels are given, replace the patches.
    """
    if observed.kinds:
        torso = make_torso(
            (observed.kinds,), (), options.encoder_sizes, kernel=1, stride=1, key=key
        )
        return DiscreteEncoder(torso, observed.kinds)
    shape, channel_axis = observed.shape, None
    if len(shape) == 3 and shape[0] < shape[-1]:  # channels come first, as in frame stacks
        shape, channel_axis = (*shape[1:], shape[0]), -3
    elif len(shape) == 2:
        shape = (*shape, 1)
    image = len(shape) == 3
    if image and not options.channels and min(shape[:2]) >= PATCHED_SIDE:
        options = dataclasses.replace(options, **PATCHES)
    torso = make_torso(
        shape if image and options.channels else observed.shape,
        options.channels,
        options.encoder_sizes,
        kernel=options.kernel,
        stride=options.stride,
        patches=options.patches,
        key=key,
    )
    if isinstance(torso, MlpTorso):
        channel_axis = None
    return BoxEncoder(torso, jnp.asarray(observed.scale), len(observed.shape), channel_axis)
