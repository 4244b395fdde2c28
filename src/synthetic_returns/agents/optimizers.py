"""Adam under strict dtype promotion, an Adam that does not drift, and gradient clipping."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree

from synthetic_returns.utils.packed import Packed

__all__ = ["SteadyState", "UsualState", "adam", "clip_unusual", "steady_adam"]

MEMORY = 0.999  # decay of Adam's mean square
UNSETTLED = 1_000  # first updates, whose large gradients do not count for the divisor
GETTING_TO_KNOW = 100  # updates before any gradient is clipped


def adam(
    learning_rate: float | optax.Schedule, *, b1: float = 0.9, b2: float = MEMORY, eps: float = 1e-8
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


class SteadyState(NamedTuple):
    """Adam's state, and the largest mean squares, which divide the steps."""

    adam: Any
    largest: Any


def steady_adam(learning_rate: float, *, significance: float = 0.0) -> optax.GradientTransformation:
    """Adam, whose steps stay small where gradients have become small.

    Adam divides by the size of recent gradients. Once there is nothing left to learn, these are
    noise, but the steps stay as large as before. Here, as in AMSGrad, the divisor is the largest
    mean square so far. The first updates do not count: the large gradients of an untrained model
    would slow down all later updates.

    All parameters are one vector in it. A small model has many arrays, and on a CPU starting an
    operation on each of them would take longer than the operations.

    Args:
      learning_rate: the learning rate.
      significance: how many standard errors the mean gradient of a weight must differ from 0 to
        hold the weight at 1. It is a weight decay as in AdamW, which falls with the root of the
        number of updates, as standard errors do: a constant one would never learn what shows in
        few batches, however often it has come. It shrinks together with the steps; otherwise the
        model would forget where nothing is left to learn. The model has to be packed.
    """
    inner = adam(learning_rate, b2=MEMORY)

    def init(params: Any) -> SteadyState:
        vector, _ = ravel_pytree(params)
        return SteadyState(inner.init(vector), jnp.zeros_like(vector))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, SteadyState]:
        gradient, unravel = ravel_pytree(updates)
        moved, adam_state = inner.update(gradient, state.adam)
        step = jnp.asarray(moved)
        moments: Any = adam_state
        count, nu = moments[0].count.astype(jnp.float32), moments[0].nu
        if significance:
            decay = jnp.minimum(significance / jnp.sqrt(count), 1)
            step -= learning_rate * decay * ravel_pytree(params.only_weights())[0]
        square = nu / (1 - jnp.power(MEMORY, count))
        largest = jnp.where(count > UNSETTLED, jnp.maximum(state.largest, square), square)
        step *= jnp.sqrt(square / jnp.maximum(largest, 1e-30))
        return unravel(step), SteadyState(adam_state, largest)

    return optax.GradientTransformation(init, update)


class UsualState(NamedTuple):
    """The running mean square of gradient norms."""

    square: Any
    seen: jax.Array


def clip_unusual(times: float) -> optax.GradientTransformation:
    """Clips the gradient of each array of a packed model to a multiple of its usual norm.

    Adam divides by the usual size, so a single large gradient would move the weights for many
    updates, far enough to silence the units of a layer for good.

    Args:
      times: the largest norm that is not clipped, as a multiple of the running root mean square.
    """

    def init(params: Any) -> UsualState:
        return UsualState(jnp.zeros(len(params.layout.shapes)), jnp.zeros((), jnp.int32))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, UsualState]:
        del params
        assert isinstance(updates, Packed)
        square = updates.square_norms()
        known = state.seen >= GETTING_TO_KNOW
        passes = times * jnp.sqrt(state.square / jnp.maximum(square, 1e-30))
        passes = jnp.where(known, jnp.minimum(1, passes), 1)
        # Clipped gradients count, too: rewards that start late are unusual only at first.
        rate = jnp.maximum(1 - MEMORY, 1 / (state.seen + 1))
        usual = state.square + rate * (square - state.square)
        return updates.scaled(passes), UsualState(usual, state.seen + 1)

    return optax.GradientTransformation(init, update)
