"""Adam for programs that let JAX refuse to mix dtypes."""

from typing import Any

import jax
import optax

__all__ = ["adam"]


def adam(
    learning_rate: float | optax.Schedule, *, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> optax.GradientTransformation:
    """Adam, with epsilon added to the root.

    Optax raises a float to the power of an integer count, which is an error under JAX's strict
    dtype promotion; here that one computation is exempt.
    """
    inner = optax.adam(learning_rate, b1=b1, b2=b2, eps=eps)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        with jax.numpy_dtype_promotion("standard"):
            return inner.update(updates, state, params)

    return optax.GradientTransformation(inner.init, update)
