"""What a state-associative model says about the states of episodes."""

import equinox as eqx
from jaxtyping import Array, Float

__all__ = ["Explanation"]


class Explanation(eqx.Module):
    """c, g, b and the predicted reward of every state, in units of reward.

    Attributes:
      c: the synthetic return of arriving in the state, as the agent gets it.
      g: the gate in [0, 1]: whether past states matter for the reward of leaving this one.
      b: what the state alone says about that reward.
      r_hat: that reward as predicted, ``b`` and the gated sum of the contributions before.
    """

    c: Float[Array, "..."]
    g: Float[Array, "..."]
    b: Float[Array, "..."]
    r_hat: Float[Array, "..."]
