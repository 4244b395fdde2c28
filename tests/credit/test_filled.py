"""Contributions of a memory that is partly empty: as by definition, without evaluating the rest."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.paper import filled
from synthetic_returns.credit.paper.filled import filled_contributions
from synthetic_returns.credit.paper.memory import EpisodicMemory
from synthetic_returns.credit.paper.sa_model import StateAssociativeModel

BATCH, CAPACITY, SIZE = 5, 4, 3
STEPS = [
    pytest.param([0, 1, 3, 4, 9], id="some"),  # the last has forgotten its first states
    pytest.param([4] * 5, id="all"),
    pytest.param([0] * 5, id="none"),
]


def problem(steps):
    model_key, states_key, weight_key = jax.random.split(jax.random.key(0), 3)
    model = StateAssociativeModel(SIZE, contribution_layers=(6, 6), key=model_key)
    states = jax.random.normal(states_key, (BATCH, CAPACITY, SIZE))
    memory = EpisodicMemory(states, jnp.asarray(steps, jnp.int32), jnp.ones(BATCH, bool))
    return model, memory, jax.random.normal(weight_key, (BATCH, CAPACITY))


def by_definition(model, memory):
    written = jnp.arange(CAPACITY)[None] < memory.steps[:, None]
    return jnp.where(written, model.contribution(memory.states), 0)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("block", [1, 3, 20, 256])
def test_values_and_gradients_are_those_of_the_definition(monkeypatch, steps, block):
    monkeypatch.setattr(filled, "_block_size", lambda: block)
    model, memory, weight = problem(steps)

    def both(contributions):
        def loss(model):
            c = contributions(model, memory)
            return jnp.sum(weight * c), c

        return jax.jit(jax.value_and_grad(loss, has_aux=True))(model)

    (_, c), gradient = both(filled_contributions)
    (_, want_c), want_gradient = both(by_definition)
    np.testing.assert_allclose(c, want_c, rtol=1e-5, atol=1e-6)
    leaves = jax.tree.leaves(want_gradient)
    assert any(np.any(leaf != 0) for leaf in leaves) == any(steps)
    for got, want in zip(jax.tree.leaves(gradient), leaves, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_the_states_get_no_gradient():
    model, memory, weight = problem([0, 1, 3, 4, 9])

    def loss(states):
        changed = EpisodicMemory(states, memory.steps, memory.whole)
        return jnp.sum(weight * filled_contributions(model, changed))

    assert not np.any(jax.jit(jax.grad(loss))(memory.states))


def test_several_models_and_memories_at_once():
    problems = [problem(steps) for steps in ([0, 1, 3, 4, 9], [4] * 5)]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *problems)

    def gradient(model, memory, weight):
        return jax.grad(lambda m: jnp.sum(weight * filled_contributions(m, memory)))(model)

    together = jax.jit(jax.vmap(gradient))(*stacked)
    for index, alone in enumerate(problems):
        want = jax.tree.leaves(jax.jit(gradient)(*alone))
        for got, one in zip(jax.tree.leaves(together), want, strict=True):
            np.testing.assert_allclose(got[index], one, rtol=1e-4, atol=1e-5)


def test_a_model_without_parameters_of_its_own_can_be_differentiated():
    """A model may close over the parameters of another framework."""
    _, memory, weight = problem([0, 1, 3, 4, 9])

    def loss(scale):
        class Model:
            def contribution(self, past):
                return jnp.einsum("...i,i->...", past, scale)

            def gate(self, current):
                return current[..., 0]

            baseline = gate

        return jnp.sum(weight * filled_contributions(Model(), memory))

    written = jnp.arange(CAPACITY)[None] < memory.steps[:, None]
    want = jnp.einsum("bc,bcs->s", jnp.where(written, weight, 0), memory.states)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(jnp.ones(SIZE)), want, rtol=1e-4, atol=1e-5)
