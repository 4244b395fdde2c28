"""A network that takes random actions in a share of its steps, for episodes to be looked at."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from synthetic_returns.nn.networks import Network

__all__ = ["ExploringNetwork"]

LEAST = 1e-8  # of a probability, so that its logarithm is finite


class ExploringNetwork(Network):
    """The policy of a network, mixed with random actions.

    An agent that has learned a task makes no mistakes, and what a mistake costs is half of what
    its credit has to show.

    Attributes:
      network: acts otherwise.
      epsilon: the share of random actions of each environment in a batch; 1 is random play.
      greedy: whether the other actions are the most probable ones, instead of sampled.
    """

    network: Network
    epsilon: Float[Array, "batch"]
    greedy: bool = eqx.field(static=True)

    def __init__(self, network: Network, epsilon: Float[Array, "batch"], *, greedy: bool = False):
        self.torso, self.core = network.torso, network.core
        self.network, self.epsilon, self.greedy = network, epsilon, greedy

    @property
    def hidden_size(self) -> int:
        """How many numbers ``recur`` makes of a state."""
        return self.network.hidden_size

    def heads(
        self, hidden: Float[Array, "*batch size"]
    ) -> tuple[Float[Array, "*batch actions"], Float[Array, "*batch"]]:
        """The logits of the mixture, and the value."""
        logits, value = self.network.heads(hidden)
        actions = logits.shape[-1]
        policy = jax.nn.softmax(logits)
        if self.greedy:
            policy = jax.nn.one_hot(jnp.argmax(logits, axis=-1), actions)
        epsilon = self.epsilon[:, None]
        mixed = jnp.log(jnp.maximum((1 - epsilon) * policy + epsilon / actions, LEAST))
        # Without exploration the very same actions, rounding included.
        untouched = (epsilon == 0) & (not self.greedy)
        return jnp.where(untouched, logits, mixed), value
