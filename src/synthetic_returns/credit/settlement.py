"""Credit as an advance: what an episode was paid before its end is settled there."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

__all__ = ["settled"]


def settled(
    credit: Float[Array, "time batch"],
    first: Bool[Array, "states batch"],
    last: Bool[Array, "states batch"],
    advanced: Float[Array, "batch"],
) -> tuple[Float[Array, "time batch"], Float[Array, "batch"]]:
    """Takes back, at the end of each episode, all credit that was paid in it.

    Over every episode the result sums to 0, so that rewards and credit sum to the true return.

    Args:
      credit: what is paid for each transition; 0 where an episode ends.
      first: whether an episode starts in each of the T + 1 states.
      last: whether one ends there.
      advanced: what the running episodes were paid before.

    Returns:
      The credit with the settlements, and what is advanced after the last transition.
    """

    def step(
        advanced: Float[Array, "batch"], inputs: tuple[Array, Array, Array]
    ) -> tuple[Float[Array, "batch"], Float[Array, "batch"]]:
        credit_t, first_tm1, last_t = inputs
        advanced = jnp.where(first_tm1, 0, advanced)
        paid_t = jnp.where(last_t, -advanced, credit_t)
        return advanced + paid_t, paid_t

    advanced, paid = jax.lax.scan(step, advanced, (credit, first[:-1], last[1:]))
    return paid, advanced
