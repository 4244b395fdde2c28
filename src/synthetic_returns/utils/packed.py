"""All parameters of a model in one array."""

import dataclasses
import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

__all__ = ["Layout", "Packed"]

WIDTH = 64  # numbers in a row: a layer of 64 units wastes none


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where the arrays of a model lie in the rows; each begins with a new one.

    Attributes:
      structure: of the model.
      shapes: of its arrays.
      weights: which of them are matrices of a linear layer.
    """

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    weights: tuple[bool, ...]

    @functools.cached_property
    def rows(self) -> tuple[int, ...]:
        """How many rows each array takes."""
        return tuple(-(-math.prod(shape) // WIDTH) for shape in self.shapes)

    @functools.cached_property
    def owners(self) -> np.ndarray:
        """1 in each row, for the array that it belongs to."""
        return np.repeat(np.eye(len(self.rows), dtype=np.float32), self.rows, axis=0)


class Packed(eqx.Module):
    """All parameters of a model in one array.

    A small model has many parameters, and on a CPU it takes longer to start an operation on each
    of them than to do it, and longer still to compile. What treats all numbers alike, such as an
    optimiser or an average, works on the rows.

    Attributes:
      rows: the numbers.
      layout: where each array lies.
    """

    rows: Float[Array, "rows width"]
    layout: Layout = eqx.field(static=True)

    @classmethod
    def of(cls, model: Any) -> "Packed":
        """Packs a model, of which all leaves are arrays of floats."""
        leaves, structure = jax.tree_util.tree_flatten_with_path(model)
        shapes = tuple(x.shape for _, x in leaves)
        weights = tuple(getattr(path[-1], "name", None) == "weight" for path, _ in leaves)
        layout = Layout(structure, shapes, weights)
        return cls(_joined(layout, model), layout)

    def like(self, model: Any) -> "Packed":
        """Packs another model of this kind, or a gradient."""
        return Packed(_joined(self.layout, model), self.layout)

    def opened(self) -> Any:
        """The model."""
        numbers, arrays, begin = self.rows.reshape(-1), [], 0
        for shape, rows in zip(self.layout.shapes, self.layout.rows, strict=True):
            array = numbers[begin : begin + math.prod(shape)]
            arrays.append(array.reshape(shape))
            begin += rows * WIDTH
        return jax.tree.unflatten(self.layout.structure, arrays)

    def square_norms(self) -> Float[Array, "arrays"]:
        """The sum of the squares of each array."""
        return jnp.sum(jnp.square(self.rows), axis=1) @ self.layout.owners

    def scaled(self, factors: Float[Array, "arrays"]) -> "Packed":
        """Each array times a factor."""
        return Packed(self.rows * (self.layout.owners @ factors)[:, None], self.layout)

    def only_weights(self) -> "Packed":
        """With 0 in place of all arrays that are no weights."""
        return self.scaled(jnp.asarray(self.layout.weights, jnp.float32))


def _joined(layout: Layout, model: Any) -> Float[Array, "rows width"]:
    """The arrays of a model one after another, each filled up to whole rows."""
    pieces = []
    for x, rows in zip(jax.tree.leaves(model), layout.rows, strict=True):
        pieces += [x.reshape(-1), jnp.zeros(rows * WIDTH - x.size)]
    return jnp.concatenate(pieces).reshape(-1, WIDTH)
