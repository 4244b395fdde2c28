"""What the end of an episode pays: terminal states earn nothing, and advances are settled."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

__all__ = ["at_ends", "settled"]


def at_ends(credit: Any, last: Any, advanced: Any = 0) -> Any:
    """The credit of states or transitions, numpy's or JAX's, with what ends pay in its place.

    No later reward can depend on a terminal state, so no method can learn its credit: it earns
    nothing. If credit is an advance, its end subtracts what the episode was paid before.

    Args:
      credit: with any axes behind those of ``last``.
      last: where an episode ends.
      advanced: what the episode was paid before, if it is to be settled.
    """
    where: Any = np.where if isinstance(credit, np.ndarray) else jnp.where
    return where(last.reshape(last.shape + (1,) * (credit.ndim - last.ndim)), -advanced, credit)


def settled(
    credit: Float[Array, "time batch"],
    first: Bool[Array, "states batch"],
    last: Bool[Array, "states batch"],
    advanced: Float[Array, "batch"],
) -> tuple[Float[Array, "time batch"], Float[Array, "batch"]]:
    """Subtracts, at the end of each episode, all credit that was paid in it.

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
        paid_t = at_ends(credit_t, last_t, advanced)
        return advanced + paid_t, paid_t

    advanced, paid = jax.lax.scan(step, advanced, (credit, first[:-1], last[1:]))
    return paid, advanced
