"""Numbers of unknown range, brought to mean 0 and standard deviation 1."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from synthetic_returns.credit.data.episode import EpisodeBatch

__all__ = ["Standardiser", "with_statistics_of"]

LARGEST = 10.0  # standard deviations; a diverging simulation must not drown all else
LEAST_SPREAD = 1e-6  # of a number that hardly ever changes, relative to its size


class Standardiser(eqx.Module):
    """Standardises observations by the mean and the variance of all states seen so far.

    Attributes:
      count: number of states so far.
      mean: of each number of an observation.
      variance: of each number of an observation.
    """

    count: Float[Array, ""]
    mean: Float[Array, "*shape"]
    variance: Float[Array, "*shape"]

    @classmethod
    def init(cls, shape: tuple[int, ...]) -> "Standardiser":
        """Leaves observations as they are until some have been seen."""
        return cls(count=jnp.zeros(()), mean=jnp.zeros(shape), variance=jnp.ones(shape))

    def __call__(self, observation: Shaped[Array, "*batch_and_shape"]) -> Float[Array, "..."]:
        """Standardised observations, with any leading axes."""
        known = jax.lax.stop_gradient(self)  # statistics are no parameters
        least = LEAST_SPREAD * jnp.maximum(jnp.abs(known.mean), 1)
        spread = jnp.sqrt(known.variance)
        spread = jnp.where(spread > least, spread, 1)
        mean, spread = (jnp.broadcast_to(x, observation.shape) for x in (known.mean, spread))
        return jnp.clip((observation.astype(jnp.float32) - mean) / spread, -LARGEST, LARGEST)

    def with_episodes(self, episodes: EpisodeBatch) -> "Standardiser":
        """The statistics with the states of new episodes."""
        x = episodes.source.astype(jnp.float32)
        valid = episodes.valid.reshape(*episodes.valid.shape, *[1] * (x.ndim - 2))
        number = jnp.sum(episodes.valid, dtype=jnp.float32)
        mean = jnp.sum(jnp.where(valid, x, 0), axis=(0, 1)) / jnp.maximum(number, 1)
        apart = x - jnp.broadcast_to(mean, x.shape)
        variance = jnp.sum(jnp.where(valid, jnp.square(apart), 0), axis=(0, 1))
        variance /= jnp.maximum(number, 1)
        share = number / jnp.maximum(self.count + number, 1)
        between = share * (1 - share) * jnp.square(mean - self.mean)
        return Standardiser(
            count=self.count + number,
            mean=self.mean + share * (mean - self.mean),
            variance=self.variance + share * (variance - self.variance) + between,
        )


def with_statistics_of(episodes: EpisodeBatch, state: Any) -> Any:
    """What a method has learned, with the statistics of new episodes in all its standardisers."""

    def is_one(x: Any) -> bool:
        return isinstance(x, Standardiser)

    return jax.tree.map(
        lambda x: x.with_episodes(episodes) if is_one(x) else x, state, is_leaf=is_one
    )
