"""Return decomposition (Liu et al. 2019): rewards of single steps that add up to the return."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.credit.redistribution.base import Redistribution, RewardModel, shares
from synthetic_returns.types import Key

__all__ = ["Decomposition"]


@dataclasses.dataclass(frozen=True)
class Decomposition(Redistribution):
    """Fits the sum of ``r_hat`` over an episode to its return.

    Least squares over many episodes find out what each transition is worth. This is the form of the
    paper's method in which the reward of a step depends on that step alone.
    """

    name: ClassVar[str] = "decomposition"
    summary: ClassVar[str] = "rewards that add up to the return"
    reference: ClassVar[str] = "Liu et al. 2019"

    def loss(
        self, model: RewardModel, episodes: EpisodeBatch, outcome: Float[Array, "batch"], key: Key
    ) -> tuple[Float[Array, ""], Float[Array, "batch"]]:
        """The mean over episodes of ``(R - sum_t r_hat(a_t, s_t+1))^2``."""
        del key
        predicted = jnp.sum(shares(model, episodes), axis=0)
        return jnp.mean(jnp.square(outcome - predicted)), predicted
