"""Value rescaling: a scale on which large returns are not so large (Pohlen et al. 2018)."""

import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["rescaled", "unscaled"]

EPSILON = 1e-3  # of the linear part, which keeps the inverse smooth


def rescaled(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """``h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x``."""
    # The difference of the root and 1, without cancellation: (a - b) = (a^2 - b^2) / (a + b).
    return jnp.sign(x) * (jnp.abs(x) / (jnp.sqrt(jnp.abs(x) + 1) + 1)) + EPSILON * x


def unscaled(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The inverse of ``rescaled``.

    ``sign(x) (((sqrt(1 + 4 epsilon (|x| + 1 + epsilon)) - 1) / (2 epsilon))^2 - 1)``
    """
    # Again without cancellation.
    inner = jnp.abs(x) + 1 + EPSILON
    quotient = 2 * inner / (jnp.sqrt(1 + 4 * EPSILON * inner) + 1)
    return jnp.sign(x) * (jnp.square(quotient) - 1)
