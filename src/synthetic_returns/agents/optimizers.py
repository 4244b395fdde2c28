"""Adam for programs that let JAX refuse to mix dtypes, one that does not drift, and a clipping."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

__all__ = ["SteadyState", "UsualState", "adam", "clip_unusual", "steady_adam"]

MEMORY = 0.999  # decay of Adam's mean square
UNSETTLED = 1_000  # updates, the length of that memory, whose gradients are those of a beginner
GETTING_TO_KNOW = 100  # updates before any size of a gradient is called unusual


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
    """Adam's state, and the mean squares that the steps are measured by."""

    adam: Any
    largest: Any


def steady_adam(learning_rate: float, *, weight_decay: float = 0.0) -> optax.GradientTransformation:
    """Adam, whose steps stay small where gradients have become small.

    Adam divides by the size of recent gradients: once there is nothing left to learn, it makes
    steps of noise as large as those that learned. Here, as in AMSGrad, the divisor is the largest
    that there was; but not in the first updates, whose gradients, of a model that knows nothing,
    would slow down all later ones.

    Args:
      learning_rate: the step size.
      weight_decay: how much of it weights lose at each step, as in AdamW. It grows small together
        with the steps: else it would forget where there is nothing left to learn.
    """
    inner = adam(learning_rate, b2=MEMORY)
    decay = optax.add_decayed_weights(-learning_rate * weight_decay, mask=_weights)

    def init(params: Any) -> SteadyState:
        return SteadyState(inner.init(params), jax.tree.map(jnp.zeros_like, params))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, SteadyState]:
        updates, adam_state = inner.update(updates, state.adam, params)
        if weight_decay:
            updates, _ = decay.update(updates, decay.init(params), params)
        moments: Any = adam_state
        count, nu = moments[0].count.astype(jnp.float32), moments[0].nu
        square = jax.tree.map(lambda x: x / (1 - jnp.power(MEMORY, count)), nu)
        largest = jax.tree.map(
            lambda old, now: jnp.where(count > UNSETTLED, jnp.maximum(old, now), now),
            state.largest,
            square,
        )
        updates = jax.tree.map(
            lambda x, now, most: x * jnp.sqrt(now / jnp.maximum(most, 1e-30)),
            updates,
            square,
            largest,
        )
        return updates, SteadyState(adam_state, largest)

    return optax.GradientTransformation(init, update)


def _weights(model: Any) -> Any:
    """Which arrays of a model are weights, and not biases or constants."""

    def is_weight(path: tuple[Any, ...], _: Any) -> bool:
        return getattr(path[-1], "name", None) == "weight"

    return jax.tree_util.tree_map_with_path(is_weight, model)


class UsualState(NamedTuple):
    """How large gradients are usually."""

    square: Any
    seen: jax.Array


def clip_unusual(times: float) -> optax.GradientTransformation:
    """Cuts the gradients of an array that are many times as large as usual.

    Adam divides by the usual size, so that one such gradient would go on to move the weights for
    many updates, as far as to where the units of a layer are silent for good.

    Args:
      times: the largest norm that passes whole, as a multiple of the usual one: the root of the
        mean square so far.
    """

    def init(params: Any) -> UsualState:
        return UsualState(jax.tree.map(lambda _: jnp.zeros(()), params), jnp.zeros((), jnp.int32))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, UsualState]:
        del params
        known = state.seen >= GETTING_TO_KNOW
        rate = jnp.maximum(1 - MEMORY, 1 / (state.seen + 1))

        def clipped(x: jax.Array, square: jax.Array) -> jax.Array:
            most = times * jnp.sqrt(square)
            norm = jnp.sqrt(jnp.sum(jnp.square(x)))
            return jnp.where(known, x * jnp.minimum(1, most / jnp.maximum(norm, 1e-30)), x)

        # Of what was cut, too: rewards that begin late are unusual only at first.
        square = jax.tree.map(
            lambda old, x: old + rate * (jnp.sum(jnp.square(x)) - old), state.square, updates
        )
        updates = jax.tree.map(clipped, updates, state.square)
        return updates, UsualState(square, state.seen + 1)

    return optax.GradientTransformation(init, update)
