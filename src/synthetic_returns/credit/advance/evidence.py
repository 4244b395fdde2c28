"""Evidence for the trust: predictions of new episodes compared with their outcomes."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from synthetic_returns.utils.averages import tracked

__all__ = ["STEEPEST", "Evidence"]

TIMES = 2048  # steps of an episode that are told apart
WINDOW = 128  # episodes in a running mean by time step; short, because the policy changes
WANDER = 0.0025  # of the variance of a slope is new with each batch
STEEPEST = 2.0  # slope; beyond that, claims and outcomes share a trend, and not a cause
TINY = 1e-24


class Evidence(eqx.Module):
    """Claims (credit paid at each step) compared with the outcomes after them.

    The slopes of outcomes on claims are followed with a Kalman filter: each batch of new episodes,
    before the model trains on them, is a noisy observation of slopes that wander around 0, give or
    take 1. Where nearly everything is luck, tiny claims have slopes of plus or minus a hundred,
    which then say nothing.

    Attributes:
      usual: by time step, the running means of the claims, then those of the outcomes.
      times: by time step, how many episodes lasted that long, at most ``WINDOW``.
      slopes: for each claim, the expected outcome for each unit of it.
      doubt: the variances of these.
      claimed: for each claim, the running mean of its squares.
      luck: for each claim, the running mean square of claim * what the slope leaves unexplained.
      examined: number of batches of new episodes so far.
    """

    usual: Float[Array, "both steps"]
    times: Float[Array, "steps"]
    slopes: Float[Array, "claims"]
    doubt: Float[Array, "claims"]
    claimed: Float[Array, "claims"]
    luck: Float[Array, "claims"]
    examined: Int[Array, ""]

    @classmethod
    def init(cls, claims: int) -> "Evidence":
        """None yet."""
        nothing = jnp.zeros(claims)
        return cls(
            usual=jnp.zeros((2 * claims, TIMES)),
            times=jnp.zeros(TIMES),
            slopes=nothing,
            doubt=jnp.ones(claims),
            claimed=nothing,
            luck=nothing,
            examined=jnp.zeros((), jnp.int32),
        )

    def with_episodes(
        self,
        claims: Float[Array, "claims time batch"],
        outcomes: Float[Array, "claims time batch"],
        mask: Bool[Array, "time batch"],
        usual_stake: Float[Array, "claims"],
        counts: Bool[Array, ""],
    ) -> "Evidence":
        """Compares the claims about new episodes with their outcomes.

        Args:
          claims: the credit that would have been paid.
          outcomes: what each claim should predict.
          mask: the steps that count.
          usual_stake: the mean square of these outcomes in the episodes that are kept.
          counts: whether the model has been trained at all.
        """
        both = jnp.where(mask[None], jnp.concatenate([claims, outcomes]), 0)

        # The mean at a time step says nothing about what the agent did.
        lasted = _by_time(jnp.sum(mask, axis=1, dtype=jnp.float32))
        times = jnp.minimum(self.times + lasted, WINDOW)
        mean = _by_time(jnp.sum(both, axis=2)) / jnp.maximum(lasted, 1)[None]
        newest = jnp.minimum(lasted / jnp.maximum(times, 1), 1)[None]
        usual = self.usual + newest * (mean - self.usual)
        now = usual[:, np.minimum(np.arange(len(mask)), TIMES - 1), None]
        claims, outcomes = jnp.split(jnp.where(mask[None], both - now, 0), 2)

        # Episodes count by how much there was to predict: a policy without mistakes leaves nothing
        # to predict, which says nothing against the model.
        steps = jnp.maximum(jnp.sum(mask, dtype=jnp.float32), 1)
        at_stake = jnp.sum(jnp.square(outcomes), axis=(1, 2)) / steps
        weight = jnp.minimum(at_stake / jnp.maximum(usual_stake, TINY), 1)

        # Steps of an episode share their luck; episodes do not.
        products = jnp.sum(claims * outcomes, axis=1)
        squares = jnp.sum(jnp.square(claims), axis=1)
        seen = self._followed(products, squares, weight)
        seen = dataclasses.replace(seen, usual=usual, times=times, examined=self.examined + 1)
        # What is usual is known before the model is.
        unseen = dataclasses.replace(self, usual=usual, times=times)
        return jax.tree.map(lambda new, old: jnp.where(counts, new, old), seen, unseen)

    def _followed(
        self,
        products: Float[Array, "claims batch"],
        squares: Float[Array, "claims batch"],
        weight: Float[Array, "claims"],
    ) -> "Evidence":
        """One step of the Kalman filter.

        Args:
          products: of claims and outcomes, a sum for each episode.
          squares: of claims, likewise.
          weight: how much the batch counts: its slope is less certain by that factor, and the true
            slope has wandered less.
        """
        unexplained = products - jnp.clip(self.slopes, 0, STEEPEST)[:, None] * squares
        square = jnp.sum(squares, axis=1)
        claimed = tracked(self.claimed, square, self.examined)
        luck = tracked(self.luck, jnp.sum(jnp.square(unexplained), axis=1), self.examined)

        slope = jnp.sum(products, axis=1) / jnp.maximum(square, TINY)
        noise = luck / jnp.maximum(claimed, TINY) / jnp.maximum(square * weight, TINY)
        new = WANDER * weight
        expected, doubt = jnp.sqrt(1 - new) * self.slopes, (1 - new) * self.doubt + new
        gain = doubt / jnp.maximum(doubt + noise, TINY)
        heard = square * weight > TINY
        return dataclasses.replace(
            self,
            slopes=jnp.where(heard, expected + gain * (slope - expected), self.slopes),
            doubt=jnp.where(heard, (1 - gain) * doubt, self.doubt),
            claimed=claimed,
            luck=luck,
        )


def _by_time(x: Float[Array, "*rows time"]) -> Float[Array, "*rows steps"]:
    """Sums over the steps that are not told apart: all from the last one on."""
    early, late = x[..., : TIMES - 1], x[..., TIMES - 1 :]
    late = jnp.sum(late, axis=-1, keepdims=True)
    missing = jnp.zeros((*x.shape[:-1], TIMES - 1 - early.shape[-1]))
    return jnp.concatenate([early, missing, late], axis=-1)
