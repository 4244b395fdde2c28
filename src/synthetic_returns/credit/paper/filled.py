"""``c`` of a memory: of the slots that were written, and of no others.

On average half of the slots are empty, because episodes begin all the time. What is stored is
worked off in blocks of states, row after row, so that activations stay in the cache; the gradient
computes them once more instead of keeping them, which would take several times the memory's own
size.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from synthetic_returns.credit.paper.memory import EpisodicMemory
from synthetic_returns.credit.paper.sa_model import ContributionModel

__all__ = ["filled_contributions"]


def filled_contributions(
    model: ContributionModel, memory: EpisodicMemory
) -> Float[Array, "batch capacity"]:
    """The contribution of each slot, and 0 of those that were never written.

    Gradients reach the model, and not the states that are stored.

    Args:
      model: gives ``c``.
      memory: the states.
    """
    batch, capacity, size = memory.states.shape
    filled = jnp.minimum(memory.steps, capacity)
    end = jnp.cumsum(filled)
    block = jnp.zeros((min(_block_size(), batch * capacity), size), memory.states.dtype)
    contribution, parameters = jax.closure_convert(lambda past: model.contribution(past), block)
    states = jax.lax.stop_gradient(memory.states)
    in_a_row = _contributions(contribution, len(block), parameters, states, end)
    slot = jnp.arange(capacity, dtype=jnp.int32)[None]
    position = (end - filled)[:, None] + slot
    return jnp.where(slot < filled[:, None], in_a_row[position], 0)


def _block_size() -> int:
    """States that are evaluated together: what fits into a cache, or what keeps a device busy."""
    return 256 if jax.default_backend() == "cpu" else 16_384


def _evaluate(
    contribution: Callable[..., Any],
    size: int,
    parameters: Sequence[Any],
    states: Float[Array, "batch capacity features"],
    end: Int[Array, "batch"],
) -> Float[Array, "states"]:
    """The contributions of all states of the first row, then of the second, and so on."""

    def step(index: Int[Array, ""], c: Float[Array, "states"]) -> Float[Array, "states"]:
        block = contribution(_block(states, end, index * size, size), *parameters)
        return jax.lax.dynamic_update_slice(c, block, (index * size,))

    room = states.shape[0] * states.shape[1] + size  # for a last block that is not full
    return jax.lax.fori_loop(0, _blocks(end, size), step, jnp.zeros(room, states.dtype))


_contributions = jax.custom_vjp(_evaluate, nondiff_argnums=(0, 1))


def _forwards(contribution: Any, size: Any, parameters: Any, states: Any, end: Any):
    return _evaluate(contribution, size, parameters, states, end), (parameters, states, end)


def _backwards(contribution: Any, size: Any, saved: Any, d_c: Any):
    parameters, states, end = saved

    def step(index: Int[Array, ""], total: Any) -> Any:
        block = _block(states, end, index * size, size)
        _, gradient = jax.vjp(lambda parameters: contribution(block, *parameters), parameters)
        d_block = jax.lax.dynamic_slice(d_c, (index * size,), (size,))
        return jax.tree.map(jnp.add, total, gradient(d_block)[0])

    nothing = jax.tree.map(jnp.zeros_like, parameters)
    d_parameters = jax.lax.fori_loop(0, _blocks(end, size), step, nothing)
    return d_parameters, jnp.zeros_like(states), None


_contributions.defvjp(_forwards, _backwards)


def _blocks(end: Int[Array, "batch"], size: int) -> Int[Array, ""]:
    return -(-end[-1] // size)


def _block(
    states: Float[Array, "batch capacity features"],
    end: Int[Array, "batch"],
    start: Int[Array, ""],
    size: int,
) -> Float[Array, "size features"]:
    """Some of the stored states, counted from the first of the first row."""
    number = start + jnp.arange(size, dtype=jnp.int32)
    row = jnp.sum(number[:, None] >= end[None], axis=1)
    row = jnp.minimum(row, len(end) - 1)  # behind the last there is nothing: any state will do
    begin = jnp.concatenate([jnp.zeros(1, end.dtype), end[:-1]])
    return states[row, (number - begin[row]) % states.shape[1]]
