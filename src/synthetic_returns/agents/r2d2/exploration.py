"""The ladder of exploration: every environment tries random actions in another share."""

import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["epsilon_ladder", "least_epsilon"]


def epsilon_ladder(epsilon: float, alpha: float, count: int) -> Float[Array, "count"]:
    """``epsilon^(1 + alpha i / (N - 1))``, i = 0 .. N - 1 (Horgan et al. 2018).

    Args:
      epsilon: the share of the first one.
      alpha: how far the ladder goes down.
      count: N; a single environment takes ``epsilon``.
    """
    rungs = jnp.arange(count, dtype=jnp.float32) / max(1, count - 1)
    return jnp.power(jnp.float32(epsilon), 1 + alpha * rungs)


def least_epsilon(epsilon: float, alpha: float) -> float:
    """The share of the last one."""
    return epsilon ** (1 + alpha)
