"""Targets of double Q-learning over several steps, and priorities."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from synthetic_returns.agents.r2d2.rescaling import rescaled, unscaled

__all__ = ["double_q_targets", "n_step_returns", "sequence_priorities"]


def n_step_returns(
    r_t: Float[Array, "time batch"],
    discount_t: Float[Array, "time batch"],
    last_t: Bool[Array, "time batch"],
    v_t: Float[Array, "time batch"],
    n: int,
) -> Float[Array, "time batch"]:
    """The returns of n steps that bootstrap from the values of the states where they end.

        g_tm1(n) = r_t + discount_t * (v_t where n = 1 or s_t is the last of its episode or of the
                                       sequence, else g_t(n - 1))

    An episode that was cut off bootstraps from its last state; one that terminated has a discount
    of 0 there.

    Args:
      r_t: rewards of arriving, t = 1 .. T.
      discount_t: discounts of arriving, t = 1 .. T.
      last_t: whether an episode ends there.
      v_t: values of the states arrived in.
      n: steps.
    """
    return_tm1 = r_t + discount_t * v_t
    for _ in range(n - 1):
        # Seen from one state later; the last one has no successor, only a value.
        return_t = jnp.concatenate([return_tm1[1:], v_t[-1:]])
        return_tm1 = r_t + discount_t * jnp.where(last_t, v_t, return_t)
    return return_tm1


def double_q_targets(
    q_t: Float[Array, "time batch actions"],
    q_target_t: Float[Array, "time batch actions"],
    r_t: Float[Array, "time batch"],
    discount_t: Float[Array, "time batch"],
    last_t: Bool[Array, "time batch"],
    *,
    n: int,
    rescale: bool,
) -> Float[Array, "time batch"]:
    """The targets of ``q_tm1``: one network chooses the action, the other says what it is worth.

    Args:
      q_t: what the learning network thinks of the states arrived in, t = 1 .. T.
      q_target_t: what the target network thinks of them.
      r_t: rewards of arriving.
      discount_t: discounts of arriving.
      last_t: whether an episode ends there.
      n: steps before a target bootstraps.
      rescale: whether values are learned on another scale than rewards; see ``rescaling``.
    """
    best = jnp.argmax(q_t, axis=-1)
    v_t = jnp.take_along_axis(q_target_t, best[..., None], axis=-1)[..., 0]
    if not rescale:
        return n_step_returns(r_t, discount_t, last_t, v_t, n)
    return rescaled(n_step_returns(r_t, discount_t, last_t, unscaled(v_t), n))


def sequence_priorities(
    error_tm1: Float[Array, "time batch"], valid_tm1: Bool[Array, "time batch"], largest: float
) -> Float[Array, "batch"]:
    """``eta max|error| + (1 - eta) mean|error|`` of each sequence, over its valid steps.

    Args:
      error_tm1: the TD errors.
      valid_tm1: which of them count.
      largest: eta.
    """
    size = jnp.where(valid_tm1, jnp.abs(error_tm1), 0)
    steps = jnp.maximum(jnp.sum(valid_tm1, axis=0, dtype=size.dtype), 1)
    return largest * jnp.max(size, axis=0) + (1 - largest) * jnp.sum(size, axis=0) / steps
