"""The LSTM's written-out gradient against automatic differentiation of a plain loop."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.nn.lstm import LstmCore, LstmState


def plain(core, x, first, state):
    """An LSTM as the textbook has it, step by step."""
    hidden, cell, outputs = state.hidden, state.cell, []
    for t in range(x.shape[0]):
        keep = 1 - first[t].astype(jnp.float32)[:, None]
        hidden, cell = hidden * keep, cell * keep
        bias = jnp.broadcast_to(core.from_input.bias, (x.shape[1], 4 * core.size))
        gates = x[t] @ core.from_input.weight.T + bias + hidden @ core.from_hidden.weight.T
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        cell = jax.nn.sigmoid(f + 1) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        outputs.append(hidden)
    return jnp.stack(outputs), LstmState(hidden, cell)


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("time", [1, 7])
def test_values_and_gradients(time, batch):
    keys = jax.random.split(jax.random.key(0), 5)
    core = LstmCore(3, 4, key=keys[0])
    x = jax.random.normal(keys[1], (time, batch, 3))
    first = jax.random.bernoulli(keys[2], 0.3, (time, batch))
    state = LstmState(*jax.random.normal(keys[3], (2, batch, 4)))
    weights = jax.random.normal(keys[4], (time, batch, 4))

    def loss(run, core, x, state):
        outputs, end = run(core, x, first, state)
        return jnp.sum(weights * outputs) + jnp.sum(jnp.sin(end.cell)) + jnp.sum(end.hidden**2)

    def fast(core, x, first, state):
        return core(x, first, state)

    both = eqx.filter_jit(jax.value_and_grad(loss, (1, 2, 3)))
    got, want = (both(run, core, x, state) for run in (fast, plain))
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
