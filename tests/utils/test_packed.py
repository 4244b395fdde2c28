"""All parameters of a model in one array, and back."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.utils.packed import WIDTH, Packed


@pytest.fixture
def model():
    """With arrays of 1 number, of several rows, and of one row exactly."""
    small, large = jax.random.split(jax.random.key(0))
    return {
        "scale": jnp.float32(2.0),
        "small": eqx.nn.Linear(3, 1, key=small),
        "large": eqx.nn.Linear(5, WIDTH, key=large),
    }


def leaves(tree):
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def test_a_packed_model_is_opened_as_it_was(model):
    opened = Packed.of(model).opened()
    assert jax.tree.structure(opened) == jax.tree.structure(model)
    for there, here in zip(leaves(opened), leaves(model), strict=True):
        assert there.shape == here.shape
        np.testing.assert_array_equal(there, here)


def test_every_array_has_its_norm_and_its_factor(model):
    packed, arrays = Packed.of(model), leaves(model)
    norms = [np.sum(x.astype(np.float64) ** 2) for x in arrays]
    np.testing.assert_allclose(packed.square_norms(), norms, rtol=1e-5)
    factors = np.arange(1.0, 1 + len(arrays), dtype=np.float32)
    scaled = leaves(packed.scaled(jnp.asarray(factors)).opened())
    for there, here, factor in zip(scaled, arrays, factors, strict=True):
        np.testing.assert_allclose(there, factor * here, rtol=1e-6)


def test_a_norm_knows_nothing_of_the_other_arrays():
    """A tiny gradient beside a huge one: the sum over all would drown it."""
    packed = Packed.of({"huge": jnp.full(100, 1e6), "tiny": jnp.full(3, 1e-6)})
    np.testing.assert_allclose(packed.square_norms(), [1e14, 3e-12], rtol=1e-5)


def test_only_the_matrices_of_layers_are_weights(model):
    weights = Packed.of(model).only_weights().opened()
    for name in ("small", "large"):
        np.testing.assert_array_equal(weights[name].weight, model[name].weight)
        np.testing.assert_array_equal(weights[name].bias, 0)
    assert weights["scale"] == 0


def test_what_fills_up_the_rows_stays_empty(model):
    packed = Packed.of(model)
    moved = packed.like(jax.tree.map(jnp.ones_like, model))
    assert float(jnp.sum(moved.rows)) == sum(x.size for x in jax.tree.leaves(model))
