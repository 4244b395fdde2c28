"""The networks of agents: torso, recurrent core, heads; here those of an actor-critic.

All modules work on arrays with any leading axes, so that acting on ``[B]`` and learning on
``[T, B]`` run the same code.
"""

import abc
import math
from collections.abc import Sequence
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped

from synthetic_returns.nn.clock import ClockCore, ClockState, clock_size
from synthetic_returns.nn.convolution import convolve
from synthetic_returns.nn.linear import affine
from synthetic_returns.nn.lstm import LstmCore, LstmState
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key

__all__ = [
    "AgentNetwork",
    "ConvTorso",
    "CoreState",
    "MlpTorso",
    "Network",
    "core_size",
    "make_torso",
    "unit_scale",
]


class MlpTorso(eqx.Module):
    """ReLU layers on a flattened observation."""

    layers: tuple[eqx.nn.Linear, ...]
    observation_rank: int = eqx.field(static=True)

    def __init__(self, observation_shape: Sequence[int], hidden: Sequence[int], *, key: Key):
        sizes = [math.prod(observation_shape), *hidden]
        keys = jax.random.split(key, len(hidden))
        self.layers = tuple(
            eqx.nn.Linear(n_in, n_out, key=k)
            for n_in, n_out, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
        )
        self.observation_rank = len(observation_shape)

    def __call__(self, observation: Shaped[Array, "*shape"]) -> Float[Array, "*batch size"]:
        """Encodes observations."""
        batch = observation.shape[: observation.ndim - self.observation_rank]
        x = unit_scale(observation).reshape(*batch, -1)
        for layer in self.layers:
            x = jax.nn.relu(affine(layer, x))
        return x


class ConvTorso(eqx.Module):
    """ReLU convolutions without padding, then ReLU layers on the flattened result."""

    convolutions: tuple[eqx.nn.Linear, ...]
    head: MlpTorso
    windows: tuple[tuple[int, int], ...] = eqx.field(static=True)

    def __init__(
        self,
        observation_shape: Sequence[int],
        channels: Sequence[int],
        hidden: Sequence[int],
        *,
        windows: Sequence[tuple[int, int]],
        key: Key,
    ):
        """Draws the parameters.

        Args:
          observation_shape: height, width and channels.
          channels: outputs of each convolution.
          hidden: units of each dense layer.
          windows: side of the square kernel, and stride, of each convolution.
          key: consumed here.
        """
        height, width, depth = observation_shape
        conv_key, head_key = jax.random.split(key)
        convolutions = []
        keys = jax.random.split(conv_key, len(channels))
        for n_out, (kernel, stride), k in zip(channels, windows, keys, strict=True):
            convolutions.append(eqx.nn.Linear(kernel * kernel * depth, n_out, key=k))
            height, width = ((size - kernel) // stride + 1 for size in (height, width))
            depth = n_out
            if height < 1 or width < 1:
                raise ValueError(
                    f"an observation of shape {tuple(observation_shape)} is too small for "
                    f"{len(channels)} layers with kernel {kernel} and stride {stride}; use fewer "
                    "layers, or an MLP torso (no channels)."
                )
        self.convolutions = tuple(convolutions)
        self.head = MlpTorso((height, width, depth), hidden, key=head_key)
        self.windows = tuple(windows)

    def __call__(self, observation: Shaped[Array, "*batch h w d"]) -> Float[Array, "*batch size"]:
        """Encodes images."""
        x = unit_scale(observation)
        for layer, (kernel, stride) in zip(self.convolutions, self.windows, strict=True):
            x = jax.nn.relu(convolve(layer, x, kernel, stride))
        return self.head(x)


def unit_scale(observation: Shaped[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Bytes as shares of 255; anything else as it is."""
    if observation.dtype == jnp.uint8:
        return observation.astype(jnp.float32) / 255
    return observation


def make_torso(
    observation_shape: Sequence[int], settings: TorsoSettings, *, key: Key
) -> MlpTorso | ConvTorso:
    """A ConvTorso for images if the settings name channels, else an MlpTorso.

    Args:
      observation_shape: shape of one observation.
      settings: the layers.
      key: consumed here.
    """
    if settings.channels and len(observation_shape) == 3:
        return ConvTorso(
            observation_shape, settings.channels, settings.sizes, windows=settings.windows, key=key
        )
    return MlpTorso(observation_shape, settings.sizes, key=key)


CoreState = LstmState | ClockState | None


class Network(eqx.Module):
    """What acts: observation to a policy and a value, by way of a torso and a recurrent core.

    Agents differ in their heads; all else that looks at a network is written once for all of them.
    """

    torso: MlpTorso | ConvTorso
    core: LstmCore | ClockCore | None

    def __init__(
        self,
        torso: MlpTorso | ConvTorso,
        feature_size: int,
        *,
        lstm_size: int,
        max_episode_steps: int,
        key: Key,
    ):
        """Draws the parameters of the core.

        Args:
          torso: observation to features.
          feature_size: how many features.
          lstm_size: units of the LSTM; 0 for none.
          max_episode_steps: for an agent without an LSTM that is told the time; 0 for one that is
            not.
          key: consumed here.
        """
        self.torso = torso
        self.core = None
        if lstm_size:
            self.core = LstmCore(feature_size, lstm_size, key=key)
        elif max_episode_steps:
            self.core = ClockCore(max_episode_steps)

    @property
    @abc.abstractmethod
    def hidden_size(self) -> int:
        """How many numbers ``recur`` makes of a state."""

    @abc.abstractmethod
    def heads(
        self, hidden: Float[Array, "*batch size"]
    ) -> tuple[Float[Array, "*batch actions"], Float[Array, "*batch"]]:
        """The logits of the policy that acts, and the value."""

    def initial_state(self, batch: int) -> CoreState:
        """The state of the core before an episode."""
        return None if self.core is None else self.core.initial_state(batch)

    def recur(
        self,
        features: Float[Array, "time batch features"],
        first: Bool[Array, "time batch"],
        state: CoreState,
    ) -> tuple[Float[Array, "time batch size"], CoreState]:
        """What the core makes of the features; the features themselves if there is no core."""
        if self.core is None or state is None:
            return features, state
        return self.core(features, first, cast(Any, state))  # its own: initial_state made it


def core_size(feature_size: int, *, lstm_size: int, max_episode_steps: int) -> int:
    """How many numbers the core of a network makes of a state; see ``Network``."""
    if lstm_size:
        return lstm_size
    return feature_size + (clock_size(max_episode_steps) if max_episode_steps else 0)


class AgentNetwork(Network):
    """Observation to policy logits and value, by way of the features that credit is given to."""

    policy_layer: eqx.nn.Linear
    policy_logits: eqx.nn.Linear
    value: eqx.nn.Linear

    def __init__(
        self, torso: MlpTorso | ConvTorso, feature_size: int, *, lstm_size: int, policy_size: int,
        num_actions: int, key: Key, max_episode_steps: int = 0,
    ):  # fmt: skip
        """Draws the parameters.

        Args:
          torso: observation to features.
          feature_size: how many features.
          lstm_size: units of the LSTM; 0 for none.
          policy_size: units of the layer before the heads.
          num_actions: how many actions.
          key: consumed here.
          max_episode_steps: for an agent without an LSTM that is told the time; 0 for one that is
            not.
        """
        core_key, layer_key, logits_key, value_key = jax.random.split(key, 4)
        super().__init__(
            torso,
            feature_size,
            lstm_size=lstm_size,
            max_episode_steps=max_episode_steps,
            key=core_key,
        )
        size = core_size(feature_size, lstm_size=lstm_size, max_episode_steps=max_episode_steps)
        self.policy_layer = eqx.nn.Linear(size, policy_size, key=layer_key)
        self.policy_logits = eqx.nn.Linear(policy_size, num_actions, key=logits_key)
        self.value = eqx.nn.Linear(policy_size, 1, key=value_key)

    @property
    def hidden_size(self) -> int:
        """How many numbers ``recur`` makes of a state."""
        return self.policy_layer.in_features  # pyright: ignore

    def heads(
        self, hidden: Float[Array, "*batch size"]
    ) -> tuple[Float[Array, "*batch actions"], Float[Array, "*batch"]]:
        """Policy logits and value."""
        x = jax.nn.relu(affine(self.policy_layer, hidden))
        return affine(self.policy_logits, x), affine(self.value, x)[..., 0]
