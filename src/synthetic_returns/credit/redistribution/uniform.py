"""Uniform credit (IRCR, Gangwani et al. 2020): every step gets its episode's return."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.credit.redistribution.base import Redistribution, RewardModel, shares
from synthetic_returns.types import Key
from synthetic_returns.utils.averages import masked_mean

__all__ = ["Uniform"]


@dataclasses.dataclass(frozen=True)
class Uniform(Redistribution):
    """Gives each transition the mean reward of the episodes that it occurs in.

    The return of an episode is shared equally among its steps. A transition is paid the mean of
    its shares over all episodes that contain it: the guidance reward of the paper. The method does
    not tell which step caused the return, so it learns fast, but a step also gets credit for
    whatever tends to happen in the same episodes.
    """

    name: ClassVar[str] = "uniform"
    summary: ClassVar[str] = "the mean return of episodes like this"
    reference: ClassVar[str] = "Gangwani et al. 2020"

    def outcome(
        self, left: Float[Array, "batch"], length: Float[Array, "batch"]
    ) -> Float[Array, "batch"]:
        """The share of each step."""
        return left / jnp.maximum(length, 1)

    def loss(
        self, model: RewardModel, episodes: EpisodeBatch, outcome: Float[Array, "batch"], key: Key
    ) -> tuple[Float[Array, ""], Float[Array, "batch"]]:
        """The mean over steps of ``(R / T - r_hat(a, s'))^2``, least at the guidance reward."""
        del key
        share = shares(model, episodes)
        predicted = jnp.sum(share, axis=0) / jnp.maximum(episodes.length, 1).astype(share.dtype)
        return masked_mean(jnp.square(outcome[None] - share), episodes.valid), predicted
