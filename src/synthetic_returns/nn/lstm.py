"""The recurrent core: an LSTM over time that is cleared where an episode starts.

Its gradient is written out: differentiating the scan would add up the gradient of the recurrent
weights step by step, in as many small matmuls; here one matmul over all steps does it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from synthetic_returns.nn.linear import affine
from synthetic_returns.types import Key

__all__ = ["LstmCore", "LstmState"]


class LstmState(eqx.Module):
    """What the recurrent core carries from step to step."""

    hidden: Float[Array, "*batch size"]
    cell: Float[Array, "*batch size"]


class LstmCore(eqx.Module):
    """An LSTM whose state is cleared where an episode starts."""

    from_input: eqx.nn.Linear
    from_hidden: eqx.nn.Linear
    size: int = eqx.field(static=True)

    def __init__(self, input_size: int, size: int, *, key: Key):
        input_key, hidden_key = jax.random.split(key)
        self.from_input = eqx.nn.Linear(input_size, 4 * size, key=input_key)
        self.from_hidden = eqx.nn.Linear(size, 4 * size, use_bias=False, key=hidden_key)
        self.size = size

    def initial_state(self, batch: int) -> LstmState:
        """The state before an episode."""
        return LstmState(jnp.zeros((batch, self.size)), jnp.zeros((batch, self.size)))

    def __call__(
        self,
        x: Float[Array, "time batch n_in"],
        first: Bool[Array, "time batch"],
        state: LstmState,
    ) -> tuple[Float[Array, "time batch size"], LstmState]:
        """Runs over time; the part that does not depend on the past is one matmul beforehand."""
        return _scan(self.from_hidden.weight, affine(self.from_input, x), first, state)


@jax.custom_vjp
def _scan(
    weight: Float[Array, "gates size"],
    from_input: Float[Array, "time batch gates"],
    first: Bool[Array, "time batch"],
    state: LstmState,
) -> tuple[Float[Array, "time batch size"], LstmState]:
    """The outputs at every step, and the state at the end."""
    return _scan_forward(weight, from_input, first, state)[0]


def _scan_forward(weight: Any, from_input: Any, first: Any, state: LstmState) -> tuple[Any, Any]:
    """The outputs, and all that the gradient needs of every step."""

    def step(state: LstmState, inputs: tuple[Array, Array]) -> tuple[LstmState, Any]:
        from_input, first = inputs
        state = jax.tree.map(lambda x: jnp.where(first[:, None], 0, x), state)
        gates = from_input + jnp.einsum("bi,oi->bo", state.hidden, weight)
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        # A forget gate that starts out open, as is usual.
        i, f, g, o = jax.nn.sigmoid(i), jax.nn.sigmoid(f + 1), jnp.tanh(g), jax.nn.sigmoid(o)
        cell = f * state.cell + i * g
        tanh_cell = jnp.tanh(cell)
        after = LstmState(o * tanh_cell, cell)
        return after, (after.hidden, (state, i, f, g, o, tanh_cell))

    end, (hidden, steps) = jax.lax.scan(step, state, (from_input, first))
    return (hidden, end), (weight, first, steps)


def _scan_backward(residuals: Any, cotangents: Any) -> tuple[Any, ...]:
    weight, first, steps = residuals
    d_hidden, d_end = cotangents

    def step(d_after: LstmState, inputs: Any) -> tuple[LstmState, Array]:
        d_hidden, first, (before, i, f, g, o, tanh_cell) = inputs
        d_hidden = d_hidden + d_after.hidden
        d_cell = d_after.cell + d_hidden * o * (1 - jnp.square(tanh_cell))
        d_gates = jnp.concatenate(
            [
                d_cell * g * i * (1 - i),
                d_cell * before.cell * f * (1 - f),
                d_cell * i * (1 - jnp.square(g)),
                d_hidden * tanh_cell * o * (1 - o),
            ],
            axis=-1,
        )
        d_before = LstmState(d_gates @ weight, d_cell * f)
        d_before = jax.tree.map(lambda x: jnp.where(first[:, None], 0, x), d_before)
        return d_before, d_gates

    d_state, d_gates = jax.lax.scan(step, d_end, (d_hidden, first, steps), reverse=True)
    before = steps[0]
    d_weight = jnp.einsum("tbo,tbi->oi", d_gates, before.hidden)
    return d_weight, d_gates, None, d_state


_scan.defvjp(_scan_forward, _scan_backward)
