"""The network of a value-based agent: a dueling head, and a policy that is nearly greedy."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from synthetic_returns.nn.linear import affine
from synthetic_returns.nn.networks import ConvTorso, MlpTorso, Network, core_size
from synthetic_returns.types import Key

__all__ = ["QNetwork", "epsilon_greedy"]


class QNetwork(Network):
    """Observation to action values, ``q = v + a - mean(a)`` (Wang et al. 2016).

    As every network it says with what probability it takes each action: it is greedy but for a
    share ``epsilon`` of random actions.

    Attributes:
      value_layer: before the value.
      value: of a state.
      advantage_layer: before the advantages.
      advantage: of each action.
      epsilon: of each environment in a batch; None for ``least_epsilon`` in all.
      arm: which action values each environment acts by; None for the last ones in all.
      least_epsilon: where nobody explores.
      arms: how many values an action has, one for each discount.
    """

    value_layer: eqx.nn.Linear
    value: eqx.nn.Linear
    advantage_layer: eqx.nn.Linear
    advantage: eqx.nn.Linear
    epsilon: Float[Array, "batch"] | None
    arm: Int[Array, "batch"] | None
    least_epsilon: float = eqx.field(static=True)
    arms: int = eqx.field(static=True)

    def __init__(
        self, torso: MlpTorso | ConvTorso, feature_size: int, *, lstm_size: int, policy_size: int,
        num_actions: int, max_episode_steps: int, least_epsilon: float, key: Key, arms: int = 1,
    ):  # fmt: skip
        """Draws the parameters.

        Args:
          torso: observation to features.
          feature_size: how many features.
          lstm_size: units of the LSTM; 0 for none.
          policy_size: units of the layers before the value and before the advantages.
          num_actions: how many actions.
          max_episode_steps: for an agent without an LSTM that is told the time; 0 for one that is
            not.
          least_epsilon: share of random actions where nobody explores.
          key: consumed here.
          arms: how many values an action has.
        """
        keys = jax.random.split(key, 5)
        super().__init__(
            torso,
            feature_size,
            lstm_size=lstm_size,
            max_episode_steps=max_episode_steps,
            key=keys[0],
        )
        size = core_size(feature_size, lstm_size=lstm_size, max_episode_steps=max_episode_steps)
        self.value_layer = eqx.nn.Linear(size, policy_size, key=keys[1])
        self.value = eqx.nn.Linear(policy_size, arms, key=keys[2])
        self.advantage_layer = eqx.nn.Linear(size, policy_size, key=keys[3])
        self.advantage = eqx.nn.Linear(policy_size, arms * num_actions, key=keys[4])
        self.epsilon = self.arm = None
        self.least_epsilon, self.arms = least_epsilon, arms

    @property
    def hidden_size(self) -> int:
        """How many numbers ``recur`` makes of a state."""
        return self.value_layer.in_features  # pyright: ignore

    def exploring(
        self, epsilon: Float[Array, "batch"], arm: Int[Array, "batch"] | None = None
    ) -> "QNetwork":
        """The same network with a share of random actions, and an arm, in each environment."""
        return eqx.tree_at(
            lambda n: (n.epsilon, n.arm), self, (epsilon, arm), is_leaf=lambda x: x is None
        )

    def family(self, hidden: Float[Array, "*batch size"]) -> Float[Array, "*batch arms actions"]:
        """The values of all actions for each arm."""
        value = affine(self.value, jax.nn.relu(affine(self.value_layer, hidden)))
        advantage = affine(self.advantage, jax.nn.relu(affine(self.advantage_layer, hidden)))
        advantage = jnp.reshape(advantage, (*value.shape, -1))
        return value[..., None] + advantage - jnp.mean(advantage, axis=-1, keepdims=True)

    def q(self, hidden: Float[Array, "*batch size"]) -> Float[Array, "*batch actions"]:
        """The values of all actions, for the arm of each environment."""
        family = self.family(hidden)
        if self.arm is None:
            return family[..., -1, :]
        return jnp.take_along_axis(family, self.arm[:, None, None], axis=-2)[..., 0, :]

    def heads(
        self, hidden: Float[Array, "*batch size"]
    ) -> tuple[Float[Array, "*batch actions"], Float[Array, "*batch"]]:
        """The log-probabilities of the actions, and the value of the best one."""
        q = self.q(hidden)
        epsilon = self.epsilon
        if epsilon is None:
            epsilon = jnp.full(q.shape[:-1], self.least_epsilon)
        return jnp.log(epsilon_greedy(q, epsilon)), jnp.max(q, axis=-1)


def epsilon_greedy(
    q: Float[Array, "*batch actions"], epsilon: Float[Array, "*batch"]
) -> Float[Array, "*batch actions"]:
    """The probabilities of actions: of the best one, and of any other at random."""
    actions = q.shape[-1]
    best = jax.nn.one_hot(jnp.argmax(q, axis=-1), actions)
    share = epsilon[..., None]
    return (1 - share) * best + share / actions
