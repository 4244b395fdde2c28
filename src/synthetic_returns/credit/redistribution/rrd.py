"""Randomized return decomposition (Ren et al. 2022): the sum is estimated from a few steps."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.credit.redistribution.base import Redistribution, RewardModel
from synthetic_returns.types import Key
from synthetic_returns.utils.checks import check_positive

__all__ = ["Rrd"]


@dataclasses.dataclass(frozen=True)
class Rrd(Redistribution):
    """Fits an estimate of the sum of ``r_hat``, from a random part of the episode, to the return.

    The expected squared error of the estimate is the squared error of the sum plus the variance of
    the estimate. So the loss also keeps the rewards of an episode's steps close to each other, all
    the more if few steps are drawn. ``unbiased`` removes this variance again.
    """

    name: ClassVar[str] = "rrd"
    summary: ClassVar[str] = "the same from random parts of episodes"
    reference: ClassVar[str] = "Ren et al. 2022"

    subsequence: int = 16
    """Steps drawn from each episode, without replacement; all steps of shorter episodes."""
    unbiased: bool = False
    """Subtract an estimate of the variance that sampling adds to the loss."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("subsequence", self.subsequence)
        if self.unbiased and self.subsequence < 2:
            raise ValueError(
                f"unbiased is True and subsequence is {self.subsequence}; the variance is "
                "estimated from the steps that are drawn: draw at least 2, or set unbiased to "
                "False."
            )

    def loss(
        self, model: RewardModel, episodes: EpisodeBatch, outcome: Float[Array, "batch"], key: Key
    ) -> tuple[Float[Array, ""], Float[Array, "batch"]]:
        """The mean over episodes of ``(R - T / K sum_{t in I} r_hat)^2``, I drawn at random.

        Unbiased: less ``T^2 / K (1 - K / T)`` times the sample variance of ``r_hat`` in I, which
        is the variance of the estimate when K of T steps are drawn without replacement.
        """
        steps, drawn = draw_steps(episodes.valid, self.subsequence, key)
        transitions = model.transitions

        def at(states: Shaped[Array, "time batch *shape"]) -> Shaped[Array, "drawn batch *shape"]:
            columns = jnp.arange(states.shape[1], dtype=jnp.int32)
            return states[steps, columns[None]]

        source, destination = (
            transitions.states(at(x)) for x in (episodes.source, episodes.observation[1:])
        )
        action = None if episodes.action is None else at(episodes.action)
        features = transitions.pair(source, action, destination, steps == 0)
        share = jnp.where(drawn, model.head(features), 0)

        length = episodes.length.astype(jnp.float32)
        number = jnp.maximum(jnp.sum(drawn, axis=0, dtype=jnp.float32), 1)
        mean = jnp.sum(share, axis=0) / number
        predicted = length * mean
        squares = jnp.square(outcome - predicted)
        if self.unbiased:
            apart = jnp.where(drawn, jnp.square(share - mean[None]), 0)
            variance = jnp.sum(apart, axis=0) / jnp.maximum(number - 1, 1)
            left_out = 1 - number / jnp.maximum(length, 1)
            squares = squares - jnp.square(length) / number * left_out * variance
        return jnp.mean(squares), predicted


def draw_steps(
    valid: Bool[Array, "time batch"], number: int, key: Key
) -> tuple[Int[Array, "drawn batch"], Bool[Array, "drawn batch"]]:
    """Draws steps of each episode without replacement.

    Args:
      valid: which steps exist.
      number: how many are drawn; all of an episode that has fewer.
      key: consumed here.

    Returns:
      The steps, and which of them count.
    """
    luck = jnp.where(valid, jax.random.uniform(key, valid.shape), -1)
    highest, steps = jax.lax.top_k(luck.T, min(number, len(valid)))
    return steps.T, highest.T >= 0
