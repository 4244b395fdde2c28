"""Checks of what users pass in: each error names the argument, its value and the rule."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

__all__ = [
    "check_finite",
    "check_finite_number",
    "check_not_negative",
    "check_positive",
    "check_positive_number",
    "check_shape",
    "check_share",
    "check_sizes",
]


def check_shape(name: str, value: Any, expected: tuple[int | None, ...], axes: str) -> None:
    """Refuses an array whose shape differs from ``expected``; None stands for any size.

    Args:
      name: what the caller calls the argument.
      value: the array.
      expected: the size of each axis.
      axes: what the axes mean, for the message, such as "[T, B, D]".
    """
    shape = jnp.shape(value)
    wanted = "(" + ", ".join("any" if size is None else str(size) for size in expected) + ")"
    if len(shape) != len(expected):
        raise ValueError(
            f"{name} has shape {shape}, of rank {len(shape)}; it must have rank {len(expected)}, "
            f"{axes}. Nothing is broadcast: add or remove axes explicitly."
        )
    for axis, (size, rule) in enumerate(zip(shape, expected, strict=True)):
        if rule is not None and size != rule:
            raise ValueError(
                f"{name} has shape {shape}; axis {axis} of {axes} has size {size} and must have "
                f"size {rule}, so that the shape is {wanted}."
            )


def check_finite(name: str, value: jax.Array) -> jax.Array:
    """Refuses NaN and infinity, also inside jit; returns the array.

    Inside jit the value is only known when the compiled function runs, so the message there cannot
    name it.
    """
    rule = f"{name} must be finite; find where the environment or the data produces it."
    if isinstance(value, Tracer):
        bad = jnp.any(~jnp.isfinite(value))
        return eqx.error_if(value, bad, f"{name} holds a NaN or an infinity; {rule}")
    flawed = np.argwhere(~np.isfinite(np.asarray(value)))
    if len(flawed):
        where = tuple(int(i) for i in flawed[0])
        raise ValueError(f"{name}{list(where)} is {np.asarray(value)[where]}; {rule}")
    return value


def check_positive(name: str, value: int) -> None:
    """Refuses anything but a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} is {value!r}; it must be a whole number of at least 1.")


def check_finite_number(name: str, value: Any) -> None:
    """Refuses a Python number that is NaN or infinite; traced values pass."""
    if isinstance(value, float) and math.isfinite(value):
        return  # what nearly all are, at every step
    if not isinstance(value, Tracer) and not np.all(np.isfinite(value)):
        raise ValueError(f"{name} is {value}; it must be a finite number.")


def check_positive_number(name: str, value: Any) -> None:
    """Refuses a Python number that is not above 0 and finite."""
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} is {value}; it must be a finite number above 0.")


def check_not_negative(name: str, value: Any) -> None:
    """Refuses a Python number that is below 0 or not finite."""
    if not 0 <= value < float("inf"):
        raise ValueError(f"{name} is {value}; it must be a finite number, 0 or more.")


def check_share(name: str, value: Any) -> None:
    """Refuses a Python number outside of [0, 1]."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is {value}; it must lie in [0, 1].")


def check_sizes(name: str, sizes: tuple[int, ...]) -> None:
    """Refuses sizes of layers that are not whole numbers of at least 1."""
    for size in sizes:
        check_positive(f"{name} is {sizes}, in which a size", size)
