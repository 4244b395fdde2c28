"""The leaves of a training state: what is saved of them, by name, and how they come back."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.utils.archives import Declared

__all__ = [
    "declared_on_host",
    "describe",
    "leaf_name",
    "like",
    "saved_leaves",
    "text_of",
    "to_host",
]

_KINDS = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct, bool, int, float)


def saved_leaves(tree: Any) -> dict[str, Any]:
    """The leaves that go into a checkpoint, by their path in the tree."""
    return {
        leaf_name(path): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
        if isinstance(leaf, _KINDS)
    }


def leaf_name(path: tuple[Any, ...]) -> str:
    """What a leaf is called in files."""
    return jax.tree_util.keystr(path)


def to_host(leaf: Any) -> np.ndarray:
    """A leaf as it is stored."""
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def declared_on_host(leaf: Any) -> Declared:
    """Shape and type of a leaf as it is stored; nothing is allocated."""
    stored = jax.eval_shape(jax.random.key_data, leaf) if _is_key(leaf) else leaf
    if not hasattr(stored, "dtype"):
        stored = np.asarray(stored)
    return Declared(tuple(stored.shape), np.dtype(stored.dtype))


def like(template: Any, array: np.ndarray) -> Any:
    """Turns a stored array into the kind of leaf that the template has."""
    if _is_key(template):
        data = jnp.array(array)
        return jax.random.wrap_key_data(data, impl=_implementation(template))
    if isinstance(template, jax.Array | jax.ShapeDtypeStruct):
        return jnp.array(array)  # a copy that jax owns, so that it can be donated
    if isinstance(template, np.ndarray):
        return np.array(array)
    if isinstance(template, np.generic):
        return array[()]
    return type(template)(array.item())


def describe(leaf: Any) -> dict[str, Any]:
    """Shape and type of a leaf, as plain data."""
    dtype = leaf.dtype if hasattr(leaf, "dtype") else type(leaf).__name__
    return {"dtype": str(dtype), "shape": list(np.shape(leaf))}


def text_of(description: dict[str, Any]) -> str:
    """Shape and type, for messages."""
    return f"{description['dtype']}{description['shape']}"


def _is_key(leaf: Any) -> bool:
    kinds = jax.Array | jax.ShapeDtypeStruct
    return isinstance(leaf, kinds) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _implementation(template: Any) -> Any:
    """Of a key; a shape does not tell, and all our keys are of the default kind."""
    return jax.random.key_impl(template if isinstance(template, jax.Array) else jax.random.key(0))
