"""What the credit of an episode is compared with in pictures."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from synthetic_returns.credit.explanation import Explanation

__all__ = ["reference_credit"]


def reference_credit(
    explanation: Explanation, last: Bool[Array, "states batch"]
) -> Float[Array, "states"] | None:
    """The mean credit of each step of an episode, over whole episodes side by side.

    Only differences of credit are identified: once a policy hardly fails, what it does right earns
    0 and the rare failure its full cost. Measured against episodes of a policy that never changes,
    the random one, what is right earns the same from the beginning of training to its end.

    Steps that few episodes reach are drawn to the mean over all steps, with the weight of one
    episode.

    Args:
      explanation: of the episodes, each from its first state on.
      last: where an episode ends; what comes after means nothing, and the end earns nothing.

    Returns:
      None unless the credit is one number for each state.
    """
    if explanation.credit is None or explanation.terms[explanation.credit].kind != "line":
        return None
    running = jnp.cumsum(last, axis=0, dtype=jnp.int32) == 0
    paid = jnp.where(running, jnp.nan_to_num(jnp.asarray(explanation.paid)), 0)
    total, count = jnp.sum(paid, axis=1), jnp.sum(running, axis=1, dtype=jnp.float32)
    overall = jnp.sum(total) / jnp.maximum(jnp.sum(count), 1)
    return (total + overall) / (count + 1)
