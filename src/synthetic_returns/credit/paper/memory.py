"""Episodic memory: one representation per state so far in the episode.

The memory is a ring of ``capacity`` slots. The state with index ``n`` in its episode is written to
slot ``n % capacity``, so an episode that outgrows the capacity forgets its oldest states, one for
each new one; how often a prediction had to do without them is counted in the metrics.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from synthetic_returns.utils.checks import check_positive

__all__ = ["EpisodicMemory", "episode_index", "memory_sum", "remember"]


class EpisodicMemory(eqx.Module):
    """The states of the running episode of each batch row, carried from unroll to unroll.

    Attributes:
      states: the ring of representations; slots that were not written yet hold zeros.
      steps: how many states of the running episode came before the next unroll; more than the
        capacity once the oldest were forgotten.
      whole: whether the running episode was seen from its first state on. If not, the sum over
        past states is incomplete, and no reward is predicted from it.
    """

    states: Float[Array, "batch capacity size"]
    steps: Int[Array, "batch"]
    whole: Bool[Array, "batch"]

    @classmethod
    def empty(cls, batch: int, capacity: int, size: int, *, whole: bool = True) -> "EpisodicMemory":
        """A memory before the first unroll.

        Args:
          batch: number of environments.
          capacity: states that fit.
          size: features of a state.
          whole: whether the first unroll begins with first states, whatever it says itself; False
            if it may begin in the middle of episodes.
        """
        check_positive("batch", batch)
        check_positive("capacity", capacity)
        check_positive("size", size)
        steps = jnp.zeros(batch, jnp.int32)
        return cls(jnp.zeros((batch, capacity, size)), steps, jnp.full(batch, whole))

    @property
    def capacity(self) -> int:
        """How many states fit."""
        return self.states.shape[1]


def episode_index(
    first: Bool[Array, "time batch"], steps: Int[Array, "batch"]
) -> Int[Array, "time batch"]:
    """How many states of its own episode precede each state of an unroll.

    Args:
      first: where an episode starts.
      steps: how many states of the running episode precede the unroll.
    """
    time = jnp.arange(first.shape[0], dtype=jnp.int32)[:, None]
    start = jax.lax.cummax(jnp.where(first, time, -steps[None]), axis=0)
    return time - start


def memory_sum(
    c_memory: Float[Array, "batch capacity"],
    c: Float[Array, "time batch"],
    first: Bool[Array, "time batch"],
    steps: Int[Array, "batch"],
) -> Float[Array, "time batch"]:
    """The sum of Eq. (basic_arch) at every step of an unroll: over k < t, within the episode.

    ``c`` is a function of one state, so each state is evaluated once, and the sum at every step is
    the difference of two prefix sums over the timeline [memory, unroll]:

        c_sum_tm1 = prefix[position of t] - prefix[position of the oldest state that t remembers]

    Args:
      c_memory: the contribution of each slot of the memory.
      c: the contributions of the states of the unroll.
      first: where an episode starts.
      steps: the memory's count of states before the unroll.
    """
    capacity = c_memory.shape[1]
    # Slots in the order of their writing, the newest last; what was never written counts nothing.
    age = jnp.arange(capacity, 0, -1, dtype=jnp.int32)[None]
    slot = (steps[:, None] - age) % capacity
    in_order = jnp.where(age <= steps[:, None], jnp.take_along_axis(c_memory, slot, axis=1), 0)

    timeline = jnp.concatenate([in_order.T, c])
    prefix = jnp.pad(jnp.cumsum(timeline, axis=0), ((1, 0), (0, 0)))
    here = capacity + jnp.arange(c.shape[0], dtype=jnp.int32)[:, None]
    remembered = jnp.minimum(episode_index(first, steps), capacity)
    return prefix[capacity:-1] - jnp.take_along_axis(prefix, here - remembered, axis=0)


def remember(
    memory: EpisodicMemory,
    states: Float[Array, "time batch size"],
    first: Bool[Array, "time batch"],
) -> EpisodicMemory:
    """The memory after an unroll: cleared where an episode started, then written, detached."""
    index = episode_index(first, memory.steps)
    steps = index[-1] + 1
    # Of states that share a slot, only the last of the running episode is written.
    age = jnp.arange(states.shape[0], 0, -1, dtype=jnp.int32)[:, None]
    kept = (age <= steps[None]) & (age <= memory.capacity)
    slot = jnp.where(kept, index % memory.capacity, memory.capacity)
    row = jnp.arange(states.shape[1], dtype=jnp.int32)[None]
    restarted = jnp.any(first, axis=0)[:, None, None]
    ring = jnp.where(restarted, 0, memory.states)
    ring = ring.at[row, slot].set(jax.lax.stop_gradient(states), mode="drop")
    return EpisodicMemory(ring, steps, memory.whole | jnp.any(first, axis=0))
