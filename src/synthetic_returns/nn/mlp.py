"""A multi-layer perceptron with one output, on inputs that may be of several kinds."""

import itertools
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from synthetic_returns.nn.linear import affine
from synthetic_returns.types import Key
from synthetic_returns.utils.checks import check_positive

__all__ = ["Mlp"]


class Mlp(eqx.Module):
    """ReLU layers and a linear output of one unit, on arrays of any leading shape."""

    layers: tuple[eqx.nn.Linear, ...]

    def __init__(self, input_size: int, hidden: Sequence[int], *, key: Key):
        """Draws the parameters.

        Args:
          input_size: of all inputs together.
          hidden: sizes of the hidden layers.
          key: consumed here.
        """
        check_positive("the input size", input_size)
        for width in hidden:
            check_positive("a layer size", width)
        sizes = [input_size, *hidden, 1]
        keys = jax.random.split(key, len(sizes) - 1)
        self.layers = tuple(
            eqx.nn.Linear(n_in, n_out, key=k)
            for n_in, n_out, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
        )

    def __call__(self, *inputs: Float[Array, "*#batch _"]) -> Float[Array, "..."]:
        """Maps the last axis to one number.

        Args:
          *inputs: one or several that count as joined along the last axis. Their leading axes may
            differ where one of them is 1: what is the same for a whole batch is computed once.
        """
        first, *rest = self.layers
        assert first.bias is not None
        ends = list(itertools.accumulate(x.shape[-1] for x in inputs))
        x, *others = (
            jnp.einsum("...i,oi->...o", x, first.weight[:, end - x.shape[-1] : end])
            for x, end in zip(inputs, ends, strict=True)
        )
        for other in others:
            x = x + other
        x = x + jnp.broadcast_to(first.bias, x.shape)
        for layer in rest:
            x = affine(layer, jax.nn.relu(x))
        return x[..., 0]

    def silent(self) -> "Mlp":
        """The same, but it says 0 until it has learned something."""
        return eqx.tree_at(
            lambda mlp: (mlp.layers[-1].weight, mlp.layers[-1].bias),
            self,
            replace_fn=jnp.zeros_like,
        )
