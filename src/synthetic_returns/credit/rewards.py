"""The augmented reward, Eq. (reward_summation)."""

from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Float

from synthetic_returns.utils.checks import check_finite_number, check_shape

__all__ = ["Rewards", "augmented_reward"]

Rewards = TypeVar("Rewards", Array, np.ndarray)  # of any shape; JAX's, or numpy's on the host


def augmented_reward(
    r_t: Rewards,
    c_t: Rewards,
    *,
    alpha: float | Float[Array, ""],
    beta: float | Float[Array, ""],
) -> Rewards:
    """The reward that TD learning maximises: ``alpha * c(s_t) + beta * r_t``.

    Args:
      r_t: the reward of arriving in ``s_t``.
      c_t: the contribution of ``s_t``, the state arrived in; detached here.
      alpha: weight of the synthetic return.
      beta: weight of the environment's reward.
    """
    check_finite_number("alpha", alpha)
    check_finite_number("beta", beta)
    check_shape("c_t", c_t, r_t.shape, "the shape of r_t")
    # numpy's arrays have no gradient to stop, and stay on the host.
    detached: Any = c_t if isinstance(c_t, np.ndarray) else jax.lax.stop_gradient(c_t)
    return alpha * detached + beta * r_t
