"""Eq. (regression_model): rewards as sums of contributions of pairs of states, in two ways.

``plain`` takes the matrix of all pairs, O(T^2). ``low_rank`` takes the factors of
``c(s_k, s_t) = phi(s_k) . psi(s_t)`` and never makes the matrix: O(T R), or O(T R^2) in many
stages. Both say the same, and have the same gradients.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

__all__ = ["Regression", "low_rank", "plain", "to_later"]


class Regression(eqx.Module):
    """What a regression says about T steps.

    Attributes:
      loss: mean squared error of the rewards, over steps, or over pairs in many stages.
      r_hat: the reward of leaving each state, as the sum of contributions to it.
      contributed: what each state contributes to the rewards of all later ones.
      own: what it contributes to its own.
    """

    loss: Float[Array, ""]
    r_hat: Float[Array, "time batch"]
    contributed: Float[Array, "time batch"]
    own: Float[Array, "time batch"]


def plain(
    c: Float[Array, "past time batch"],
    reward: Float[Array, "time batch"],
    valid: Bool[Array, "time batch"],
    *,
    multi_stage: bool,
) -> Regression:
    """From the matrix of pairs.

    Args:
      c: the contribution of each state k to each state t; only k <= t counts.
      reward: of leaving each state.
      valid: which steps exist.
      multi_stage: fit each contribution to what those of earlier states leave, one after another.
    """
    time = len(reward)
    past = jnp.triu(jnp.ones((time, time), bool))[..., None]
    c = jnp.where(past & valid[None] & valid[:, None], c, 0)
    r_hat = jnp.sum(c, axis=0)
    own = jnp.moveaxis(jnp.diagonal(c), -1, 0)
    contributed = jnp.sum(c, axis=1) - own
    if multi_stage:
        earlier = jax.lax.stop_gradient(jnp.cumsum(c, axis=0) - c)
        error = jnp.where(past & valid[None], jnp.square(reward[None] - earlier - c), 0)
        return Regression(jnp.sum(error) / _pairs(valid), r_hat, contributed, own)
    error = jnp.where(valid, jnp.square(reward - r_hat), 0)
    return Regression(jnp.sum(error) / _steps(valid), r_hat, contributed, own)


def low_rank(
    phi: Float[Array, "time batch rank"],
    psi: Float[Array, "time batch rank"],
    reward: Float[Array, "time batch"],
    valid: Bool[Array, "time batch"],
    *,
    multi_stage: bool,
) -> Regression:
    """From the factors of the pairs, by prefix sums.

    Args:
      phi: what each state contributes, by rank.
      psi: how far each state takes contributions up, by rank.
      reward: of leaving each state.
      valid: which steps exist.
      multi_stage: fit each contribution to what those of earlier states leave, one after another.
    """
    phi, psi = (jnp.where(valid[..., None], x, 0) for x in (phi, psi))
    so_far = jnp.cumsum(phi, axis=0)
    r_hat = _dot(so_far, psi)
    own = _dot(phi, psi)
    contributed = _dot(phi, to_later(psi))
    if not multi_stage:
        error = jnp.where(valid, jnp.square(reward - r_hat), 0)
        return Regression(jnp.sum(error) / _steps(valid), r_hat, contributed, own)
    # The squares of ``r_t - p_kt - c_kt`` over k <= t, multiplied out, with p_kt the sum of the
    # contributions of the states before k, which is taken as given.
    fixed_psi = jax.lax.stop_gradient(psi)
    before = jax.lax.stop_gradient(so_far - phi)
    r = reward[..., None]
    earlier_square = _quadratic(_outer_sums(before, before), fixed_psi, fixed_psi)
    cross = _quadratic(_outer_sums(before, phi), fixed_psi, psi)
    square = _quadratic(_outer_sums(phi, phi), psi, psi)
    number = jnp.cumsum(valid, axis=0, dtype=reward.dtype)
    known = number * jnp.square(reward) - 2 * reward * _dot(jnp.cumsum(before, axis=0), fixed_psi)
    error = known + earlier_square - 2 * _dot(r * so_far, psi) + 2 * cross + square
    loss = jnp.sum(jnp.where(valid, error, 0)) / _pairs(valid)
    return Regression(loss, r_hat, contributed, own)


def to_later(x: Float[Array, "time batch rank"]) -> Float[Array, "time batch rank"]:
    """The sum over the states after each one."""
    return jnp.cumsum(x[::-1], axis=0)[::-1] - x


def _dot(
    x: Float[Array, "time batch rank"], y: Float[Array, "time batch rank"]
) -> Float[Array, "time batch"]:
    return jnp.sum(x * y, axis=-1)


def _outer_sums(
    x: Float[Array, "time batch rank"], y: Float[Array, "time batch rank"]
) -> Float[Array, "time batch rank rank"]:
    return jnp.cumsum(x[..., :, None] * y[..., None, :], axis=0)


def _quadratic(
    matrix: Float[Array, "time batch rank rank"],
    x: Float[Array, "time batch rank"],
    y: Float[Array, "time batch rank"],
) -> Float[Array, "time batch"]:
    return jnp.einsum("tbij,tbi,tbj->tb", matrix, x, y)


def _steps(valid: Bool[Array, "time batch"]) -> Float[Array, ""]:
    return jnp.maximum(jnp.sum(valid, dtype=jnp.float32), 1)


def _pairs(valid: Bool[Array, "time batch"]) -> Float[Array, ""]:
    number = jnp.cumsum(valid, axis=0, dtype=jnp.float32)
    return jnp.maximum(jnp.sum(jnp.where(valid, number, 0)), 1)
