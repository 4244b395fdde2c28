"""Gradients of convolutions that are written out, against those of XLA."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.nn.convolution import convolve


def of_xla(layer, x, kernel, stride):
    weight = layer.weight.T.reshape(kernel, kernel, x.shape[-1], -1)
    y = jax.lax.conv_general_dilated(
        x.reshape(-1, *x.shape[-3:]), weight, (stride, stride), "VALID",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )  # fmt: skip
    y = y.reshape(*x.shape[:-3], *y.shape[1:])
    return y + jnp.broadcast_to(layer.bias, y.shape)


@pytest.mark.parametrize(
    ("height", "width", "kernel", "stride"),
    [
        (9, 9, 3, 2),
        (10, 9, 3, 2),  # a row that no window reaches
        (8, 7, 3, 1),
        (12, 11, 4, 2),
        (13, 16, 5, 3),
        (8, 8, 2, 1),
        (9, 9, 3, 3),
    ],
)
def test_values_and_gradients_equal_those_of_xla(height, width, kernel, stride):
    keys = jax.random.split(jax.random.key(0), 3)
    layer = eqx.nn.Linear(kernel * kernel * 3, 5, key=keys[0])
    x = jax.random.normal(keys[1], (2, 4, height, width, 3))
    like = jax.eval_shape(lambda: of_xla(layer, x, kernel, stride))
    direction = jax.random.normal(keys[2], like.shape)

    def loss(function):
        return lambda layer_x: jnp.sum(direction * function(*layer_x, kernel, stride) ** 2)

    ours, theirs = (
        eqx.filter_jit(eqx.filter_value_and_grad(loss(f)))((layer, x)) for f in (convolve, of_xla)
    )
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
