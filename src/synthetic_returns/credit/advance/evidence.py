"""Evidence for the trust: predictions of new episodes compared with their outcomes."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from synthetic_returns.utils.averages import tracked, tracking_rate

__all__ = ["Evidence"]

TIMES = 2048  # steps of an episode that are told apart
SETTLED = 50  # batches before the running means are reliable
WINDOW = 128  # episodes in a running mean by time step; short, because the policy changes


class Evidence(eqx.Module):
    """Claims (credit paid at each step) compared with the outcomes after them.

    Attributes:
      usual: by time step, the running means of the claims, then those of the outcomes.
      times: by time step, how many episodes lasted that long, at most ``WINDOW``.
      products: for each claim, running means of claim * outcome and of claim squared, on new
        episodes before the model trained on them.
      doubt: for each claim, the variance of the first of these means.
      at_stake: for each claim, the running mean square of the outcome.
      most_at_stake: the largest value of ``at_stake`` so far.
      examined: number of batches of new episodes so far.
    """

    usual: Float[Array, "both steps"]
    times: Float[Array, "steps"]
    products: Float[Array, "claims 2"]
    doubt: Float[Array, "claims"]
    at_stake: Float[Array, "claims"]
    most_at_stake: Float[Array, "claims"]
    examined: Int[Array, ""]

    @classmethod
    def init(cls, claims: int) -> "Evidence":
        """None yet."""
        return cls(
            usual=jnp.zeros((2 * claims, TIMES)),
            times=jnp.zeros(TIMES),
            products=jnp.zeros((claims, 2)),
            doubt=jnp.zeros(claims),
            at_stake=jnp.zeros(claims),
            most_at_stake=jnp.zeros(claims),
            examined=jnp.zeros((), jnp.int32),
        )

    @property
    def slopes(self) -> Float[Array, "claims"]:
        """Slopes of the outcomes on the claims, 0 or more, shrunk by their uncertainty.

        A slope s with variance v counts as s / (1 + v), its expected value if slopes are of the
        order of 1. Otherwise, where nearly everything is luck, tiny claims would have slopes of
        plus or minus a hundred.
        """
        product, square = self.products.T
        return jnp.maximum(product * square / (square**2 + self.doubt + 1e-24), 0)

    def with_episodes(
        self,
        claims: Float[Array, "claims time batch"],
        outcomes: Float[Array, "claims time batch"],
        mask: Bool[Array, "time batch"],
        counts: Bool[Array, ""],
    ) -> "Evidence":
        """Compares the claims about new episodes with their outcomes.

        Args:
          claims: the credit that would have been paid.
          outcomes: what each claim should predict.
          mask: the steps that count.
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

        steps = jnp.maximum(jnp.sum(mask, dtype=jnp.float32), 1)
        product = jnp.sum(claims * outcomes, axis=1) / steps  # of each episode
        square = jnp.sum(jnp.square(claims), axis=1) / steps
        found = jnp.sum(jnp.stack([product, square], axis=1), axis=2)
        # Steps of an episode share their luck; episodes do not.
        doubt = jnp.sum(jnp.square(product), axis=1)
        at_stake = jnp.sum(jnp.square(outcomes), axis=(1, 2)) / steps

        # Episodes count by how much there was to predict: a policy without mistakes leaves nothing
        # to predict, which says nothing against the model.
        usually = tracked(self.at_stake, at_stake, self.examined)
        settled = self.examined >= SETTLED
        most = jnp.where(settled, jnp.maximum(self.most_at_stake, usually), usually)
        news = jnp.where(counts, jnp.minimum(at_stake / jnp.maximum(most, 1e-12), 1), 0)
        rate = news * tracking_rate(self.examined)
        return Evidence(
            usual=usual,
            times=times,
            products=self.products + rate[:, None] * (found - self.products),
            doubt=jnp.square(1 - rate) * self.doubt + jnp.square(rate) * doubt,
            at_stake=jnp.where(counts, usually, self.at_stake),
            most_at_stake=jnp.where(counts, most, self.most_at_stake),
            examined=self.examined + counts.astype(jnp.int32),
        )


def _by_time(x: Float[Array, "*rows time"]) -> Float[Array, "*rows steps"]:
    """Sums over the steps that are not told apart: all from the last one on."""
    early, late = x[..., : TIMES - 1], x[..., TIMES - 1 :]
    late = jnp.sum(late, axis=-1, keepdims=True)
    missing = jnp.zeros((*x.shape[:-1], TIMES - 1 - early.shape[-1]))
    return jnp.concatenate([early, missing, late], axis=-1)
