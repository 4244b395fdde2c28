"""What the agent is paid: the environment's rewards and credit, mixed."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from synthetic_returns.credit.rewards import Rewards, augmented_reward
from synthetic_returns.utils.checks import check_finite_number

__all__ = ["RewardMix"]


@dataclasses.dataclass(frozen=True)
class RewardMix:
    """The weights of rewards and credit."""

    alpha: float = 1.0
    """Weight of the credit, the paper's synthetic return, in the augmented reward."""
    beta: float = 1.0
    """Weight of the environment's reward in the augmented reward."""
    scale: float = 1.0
    """Factor applied to both rewards and credit before the agent learns from them. Reported
    returns are not scaled."""
    last_reward: float = 1.0
    """Share of an episode's last reward that the agent is paid. Use 0 if earlier steps earned
    all of it, because credit has paid it already."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            check_finite_number(field.name, getattr(self, field.name))

    def augmented(
        self,
        r_t: Rewards,
        credit_t: Rewards,
        last_t: Bool[Array | np.ndarray, "*batch"],
    ) -> Rewards:
        """The augmented reward, Eq. (reward_summation), of numpy's or JAX's arrays.

        Args:
          r_t: the reward of arriving in each state.
          credit_t: the credit of arriving there, in the same units; detached.
          last_t: whether an episode ends there.
        """
        where: Any = np.where if isinstance(r_t, np.ndarray) else jnp.where
        paid_t = where(last_t, self.last_reward * r_t, r_t)
        return augmented_reward(paid_t, credit_t, alpha=self.alpha, beta=self.beta)
