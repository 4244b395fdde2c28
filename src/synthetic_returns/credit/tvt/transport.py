"""Temporal value transport: from reads and values to rewards of the steps that were read."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

__all__ = ["Strengths", "Weights", "splices", "transport_from", "transported"]

Weights = Float[Array, "batch heads time read"]
Strengths = Float[Array, "time batch heads"]


def transport_from(
    weights: Weights, strengths: Strengths, *, threshold: float, horizon: int
) -> Bool[Array, "time batch heads"]:
    """The steps t' that value is transported from, for each head.

    A read counts if it is stronger than the threshold and looks furthest at a step that lies more
    than the horizon back. Reads that count one right after the other are one event, and the
    strongest of them stands for it.

    Args:
      weights: how much of each earlier step is read at each step.
      strengths: how sharp each read is.
      threshold: of strengths.
      horizon: how many steps back the agent's own discounted value reaches.
    """
    looked_at = jnp.moveaxis(jnp.argmax(weights, axis=-1).astype(jnp.int32), -1, 0)
    time = jnp.arange(len(looked_at), dtype=jnp.int32)[:, None, None]
    return splices(jnp.where(time - looked_at > horizon, strengths, 0), threshold)


def splices(strengths: Strengths, threshold: float) -> Bool[Array, "time batch heads"]:
    """The strongest step of each window in which strengths are above a threshold.

    Of several that are equally strong, it is the first.
    """
    above = strengths > threshold
    height = jnp.where(above, strengths, -jnp.inf)

    def so_far(most: Array, height: Array) -> tuple[Array, Array]:
        """The most of this window before each step; -inf where no window is open."""
        after = jnp.where(jnp.isneginf(height), -jnp.inf, jnp.maximum(most, height))
        return after, most

    nothing = jnp.full(strengths.shape[1:], -jnp.inf)
    _, before = jax.lax.scan(so_far, nothing, height)
    _, after = jax.lax.scan(so_far, nothing, height, reverse=True)
    return above & (height > before) & (height >= after)


def transported(
    weights: Weights,
    values: Float[Array, "time batch"],
    sources: Bool[Array, "time batch heads"],
    *,
    alpha: float,
    horizon: int,
) -> Float[Array, "time batch read"]:
    """What each step t' gives to each earlier t: ``alpha w_t'[t] V_t'``, summed over the heads.

    Args:
      weights: how much of each earlier step is read at each step.
      values: what is expected at each step.
      sources: the steps that value is transported from, for each head.
      alpha: the share that is transported.
      horizon: steps no further back than this get nothing.
    """
    time = jnp.arange(len(values), dtype=jnp.int32)
    far = (time[:, None] - time[None] > horizon)[:, None]
    given = jnp.einsum("bhtk,tbh->tbk", weights, sources.astype(weights.dtype))
    return jnp.where(far, alpha * given * values[..., None], 0)
