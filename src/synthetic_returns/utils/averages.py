"""Averages over the entries that count."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

__all__ = [
    "explained_variance",
    "masked_mean",
    "masked_variance",
    "suffix_average",
    "tracked",
    "unit_of",
]

RATE = 0.02  # of running averages
SUFFIX = 9  # a suffix average is over the last ninth of all values
LEAST_RATE = 0.002  # so that a suffix never becomes too long to follow what changes


def masked_mean(x: Float[Array, "*shape"], valid: Bool[Array, "*shape"]) -> Float[Array, ""]:
    """The mean over valid entries; 0 if there are none."""
    return jnp.sum(jnp.where(valid, x, 0)) / jnp.maximum(jnp.sum(valid, dtype=x.dtype), 1)


def masked_variance(x: Float[Array, "*shape"], valid: Bool[Array, "*shape"]) -> Float[Array, ""]:
    """The variance over valid entries; 0 if there are none."""
    return masked_mean(jnp.square(x - masked_mean(x, valid)), valid)


def explained_variance(
    target: Float[Array, "*shape"],
    prediction: Float[Array, "*shape"],
    valid: Bool[Array, "*shape"],
) -> Float[Array, ""]:
    """The fraction of the target's variance that the prediction removes; 0 if there is none."""
    total = masked_variance(target, valid)
    left = masked_variance(target - prediction, valid)
    return jnp.where(total > 1e-12, 1 - left / jnp.maximum(total, 1e-12), 0)


def tracked(
    average: Float[Array, "..."], value: Float[Array, "..."], count: Int[Array, ""]
) -> Float[Array, "..."]:
    """A running average after ``count`` values; at first it is their mean."""
    return average + jnp.maximum(RATE, 1 / (count + 1)) * (value - average)


def unit_of(square: Float[Array, "..."]) -> Float[Array, "..."]:
    """The unit of measure that a running variance or mean square makes: its root, and never 0."""
    return jnp.sqrt(jnp.maximum(square, 1e-12))


def suffix_average(
    average: Float[Array, "..."], value: Float[Array, "..."], count: Int[Array, ""]
) -> Float[Array, "..."]:
    """A running average after ``count`` values, over about the last ninth of them.

    It follows what changes fast at first, and averages over more and more: the polynomial decay of
    Shamir and Zhang (2013), "Stochastic Gradient Descent for Non-smooth Optimization".
    """
    rate = jnp.maximum(LEAST_RATE, SUFFIX / (count + SUFFIX))
    return average + rate * (value - average)
