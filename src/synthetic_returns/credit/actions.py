"""Actions as inputs of a credit method's model."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from synthetic_returns.credit.spec import EpisodeSpec

__all__ = ["ActionFeatures"]


class ActionFeatures(eqx.Module):
    """A unit for each of a few actions, the numbers of others; nothing where they are not known.

    Attributes:
      num_actions: how many there are; None where an action is an array of numbers.
      size: how many features an action has.
      rank: axes of one action.
    """

    num_actions: int | None = eqx.field(static=True)
    size: int = eqx.field(static=True)
    rank: int = eqx.field(static=True)

    def __init__(self, spec: EpisodeSpec):
        """For the actions of a kind of episodes."""
        self.num_actions = spec.num_actions
        self.rank = len(spec.action_shape)
        if spec.num_actions is not None:
            self.size = spec.num_actions
        else:
            self.size = math.prod(spec.action_shape) if spec.action_dtype is not None else 0

    def __call__(
        self, action: Shaped[Array, "time batch *action"] | None, like: Float[Array, "time batch _"]
    ) -> Float[Array, "time batch size"]:
        """The features of actions, one for each row of the features that they stand beside."""
        if action is None or not self.size:
            return jnp.zeros((*like.shape[:2], self.size))
        if self.num_actions is not None:
            return jax.nn.one_hot(action, self.num_actions)
        return jnp.reshape(action, (*like.shape[:2], self.size)).astype(jnp.float32)
