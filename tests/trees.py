"""All numbers of a pytree, to compare two of them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


def arrays(tree: Any) -> dict[str, np.ndarray]:
    """The arrays and numbers by their path; random keys as their data."""
    found = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        if eqx.is_array_like(leaf):
            found[jax.tree_util.keystr(path)] = np.asarray(leaf)
    return found
