"""A linear layer on the last axis of an array of any rank."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["affine"]


def affine(layer: eqx.nn.Linear, x: Float[Array, "*batch n_in"]) -> Float[Array, "*batch n_out"]:
    """Applies the layer: one matmul, whatever the leading shape."""
    y = jnp.einsum("...i,oi->...o", x, layer.weight)
    if layer.bias is None:
        return y
    return y + jnp.broadcast_to(layer.bias, y.shape)
