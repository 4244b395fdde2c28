"""What came of what was paid in advance: the evidence that the trust in a prediction rests on."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from synthetic_returns.utils.averages import tracked, tracking_rate

__all__ = ["Evidence"]

TIMES = 2048  # steps of an episode that are told apart
SETTLED = 50  # batches of which the running means are made; the first ones may be anything
WINDOW = 128  # episodes that say what is usual now; the policy changes


class Evidence(eqx.Module):
    """Claims, each a number paid at a step, compared with what came after it.

    Attributes:
      usual: by time step, the running means of the claims, and then those of their outcomes.
      times: how many episodes lasted so long, at most ``WINDOW``.
      products: for each claim, running means of claim * outcome and of claim squared, on episodes
        before they were trained on.
      doubt: for each, the variance of the first of them.
      at_stake: for each, the running mean square of the outcome.
      most_at_stake: the largest that this ever was.
      examined: how many batches of new episodes were compared.
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
        """Of the outcomes on the claims, 0 or more, and as far as they are known.

        A slope s that is known up to a variance v counts as s / (1 + v), which is what to expect of
        it if slopes are of the order of 1. Else what claims next to nothing where nearly all is
        luck would have a slope of plus or minus a hundred.
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
        """Compares the claims about new episodes with what came of them.

        Args:
          claims: what would have been paid.
          outcomes: what each is compared with.
          mask: the steps that count.
          counts: whether the claims mean anything yet.
        """
        both = jnp.where(mask[None], jnp.concatenate([claims, outcomes]), 0)

        # What is usual at a time says nothing about what was done.
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

        # Episodes count by how much there was to predict: those of a policy that makes no mistakes
        # leave nothing, and say nothing against the model.
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
