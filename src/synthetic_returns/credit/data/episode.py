"""One finished episode, a batch of them, and a segment of running ones."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

__all__ = ["Episode", "EpisodeBatch", "Segment", "whole_episodes"]

# Segments are recorded on the host, in numpy, and credited on the device.
AnyArray = Array | np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Episode:
    """One finished episode of n steps, as numpy arrays.

    Attributes:
      observation: the n + 1 states, the terminal one included.
      reward: the reward of leaving each of the first n.
      discount: discount after each step, without the agent's: 0 where the episode terminated.
      action: the action in each state, if known.
      log_probs: the log-probability of each action in each state, if known.
      value: the agent's value of each state, if known.
      stride: how many steps apart the states are; rewards are sums from one to the next.
    """

    observation: np.ndarray
    reward: np.ndarray
    discount: np.ndarray
    action: np.ndarray | None = None
    log_probs: np.ndarray | None = None
    value: np.ndarray | None = None
    stride: int = 1

    def __len__(self) -> int:
        return len(self.reward)


class EpisodeBatch(eqx.Module):
    """Finished episodes side by side, padded to the same length.

    Attributes:
      observation: ``[T + 1, B, ...]``; the terminal state of an episode stands right behind its
        last step.
      reward: of leaving each state; 0 behind the end.
      discount: after each step.
      length: steps of each episode.
      action: what the agent did in each state.
      log_probs: how likely each action was, as a logarithm.
      value: what the agent expected.
      contribution: the true contribution of each step, where known; not of recorded episodes.
    """

    observation: Shaped[Array, "states batch *shape"]
    reward: Float[Array, "time batch"]
    discount: Float[Array, "time batch"]
    length: Int[Array, "batch"]
    action: Shaped[Array, "time batch *action"] | None = None
    log_probs: Float[Array, "time batch actions"] | None = None
    value: Float[Array, "time batch"] | None = None
    contribution: Float[Array, "time batch"] | None = None

    @property
    def valid(self) -> Bool[Array, "time batch"]:
        """Which steps exist."""
        return jnp.arange(self.reward.shape[0], dtype=jnp.int32)[:, None] < self.length[None]

    @property
    def source(self) -> Shaped[Array, "time batch *shape"]:
        """The states that were left."""
        return self.observation[:-1]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Segment:
    """T transitions of B running episodes, between T + 1 states.

    Attributes:
      observation: the states, ``[T + 1, B, ...]``.
      first: whether an episode starts there.
      last: whether one ends there. A transition from a last state leads into the next episode: it
        exists only in the data.
      reward: of each transition.
      discount: after each transition.
      action: of each transition, where known.
      log_probs: how likely each action was there, as a logarithm.
      value: what the agent expected in each source state.
      contribution: the true contribution of each transition, where known.
    """

    observation: Shaped[AnyArray, "states batch *shape"]
    first: Bool[AnyArray, "states batch"]
    last: Bool[AnyArray, "states batch"]
    reward: Float[AnyArray, "time batch"]
    discount: Float[AnyArray, "time batch"]
    action: Shaped[AnyArray, "time batch *action"] | None = None
    log_probs: Float[AnyArray, "time batch actions"] | None = None
    value: Float[AnyArray, "time batch"] | None = None
    contribution: Float[AnyArray, "time batch"] | None = None

    @classmethod
    def of_episodes(cls, length: Int[AnyArray, "batch"], **fields: Any) -> "Segment":
        """Whole episodes, one in each column, with as many steps as ``length`` says of each.

        Args:
          length: steps of each episode.
          **fields: all else, padded to one length.
        """
        time = np.arange(len(fields["observation"]), dtype=np.int32)[:, None]
        last = time >= length[None]
        return cls(first=np.broadcast_to(time == 0, last.shape), last=last, **fields)

    @property
    def valid(self) -> Bool[AnyArray, "time batch"]:
        """Which transitions stay within an episode."""
        return ~self.last[:-1]

    @property
    def arrived(self) -> Shaped[AnyArray, "time batch *shape"]:
        """The destination states."""
        return self.observation[1:]


def whole_episodes(segment: Segment) -> EpisodeBatch:
    """The one whole episode in each column of a segment."""
    device = jax.tree.map(jnp.asarray, segment)
    return EpisodeBatch(
        observation=device.observation,
        reward=jnp.where(device.valid, device.reward, 0),
        discount=device.discount,
        length=jnp.sum(device.valid, axis=0, dtype=jnp.int32),
        action=device.action,
        log_probs=device.log_probs,
        value=device.value,
        contribution=device.contribution,
    )
