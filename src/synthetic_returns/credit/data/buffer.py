"""Finished episodes, kept in a bounded buffer and drawn from it in batches."""

import math
from collections.abc import Iterator, Sequence

import jax.numpy as jnp
import numpy as np

from synthetic_returns.credit.data.episode import Episode, EpisodeBatch
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.utils.buckets import bucket

__all__ = ["EpisodeBuffer", "padded"]

ALWAYS = ("observation", "reward", "discount")


class EpisodeBuffer:
    """The newest episodes, and a sample of all older ones.

    Half of the slots are a queue of the newest episodes. What falls out of the queue enters the
    other half, the archive, with a chance that makes its sample even in the logarithm of time: as
    many episodes from 1,000 to 2,000 as from 10,000 to 20,000. A fair sample would forget, in
    proportion to how long ago it was, what the policy did before it was good; then nothing in the
    buffer would say what mistakes cost, and the model would drift.
    """

    def __init__(self, spec: EpisodeSpec, slots: int, fields: Sequence[str] = ()):
        """Reserves the memory; pages that no episode touches cost nothing.

        Args:
          spec: of the episodes.
          slots: how many are kept, at least 2.
          fields: what is kept of them beside observations, rewards and discounts: ``action``,
            ``log_prob``, ``value``.
        """
        if slots < 2:
            raise ValueError(
                f"slots is {slots}; the buffer needs at least 2, one for the newest episode and "
                "one for an older one."
            )
        steps = (slots, spec.max_steps)
        self.arrays: dict[str, np.ndarray] = {
            "observation": np.zeros(
                (slots, spec.max_steps + 1, *spec.observation_shape), spec.observation_dtype
            ),
            "reward": np.zeros(steps, np.float32),
            "discount": np.zeros(steps, np.float32),
        }
        for name in fields:
            shape, dtype = steps, np.dtype(np.float32)
            if name == "action":
                shape, dtype = (*steps, *spec.action_shape), spec.action_dtype
            self.arrays[name] = np.zeros(shape, dtype)
        self.length = np.zeros(slots, np.int32)
        self.seen = np.zeros((), np.int64)

    @property
    def slots(self) -> int:
        """How many episodes fit."""
        return len(self.length)

    @property
    def max_steps(self) -> int:
        """How long an episode may be."""
        return self.arrays["reward"].shape[1]

    @property
    def bytes(self) -> int:
        """Memory in use by the episodes held."""
        per_step = sum(array[0, 0].nbytes for array in self.arrays.values())
        terminal = self.arrays["observation"][0, 0].nbytes
        return int(self.length.sum()) * per_step + len(self) * terminal

    def __len__(self) -> int:
        return int(np.count_nonzero(self.length))

    def add(self, episode: Episode, rng: np.random.Generator) -> None:
        """Takes in the newest episode."""
        queue = self.slots // 2
        archive = self.slots - queue
        slot = int(self.seen) % queue
        if self.seen >= queue:
            archived = int(self.seen) - queue
            if archived < archive:
                self._copy(slot, queue + archived)
            elif rng.random() < archive / (archived * math.log(archived + 1)):
                self._copy(slot, queue + int(rng.integers(archive)))
        self._write(slot, episode)
        self.seen = self.seen + 1

    def episodes(self) -> Iterator[Episode]:
        """All that are held: first the archive, then the newest in the order in which they came."""
        queue = self.slots // 2
        newest = np.roll(np.arange(queue), -(int(self.seen) % queue) if self.seen > queue else 0)
        for slot in (*range(queue, self.slots), *newest):
            if steps := int(self.length[slot]):
                fields = {
                    name: array[slot, : steps + (name == "observation")].copy()
                    for name, array in self.arrays.items()
                }
                yield Episode(**fields)

    def sample(self, size: int, rng: np.random.Generator) -> EpisodeBatch:
        """Draws episodes, padded to the longest of them, rounded up to one of few lengths."""
        slots = rng.choice(np.flatnonzero(self.length), size)
        length = self.length[slots]
        longest = bucket(int(length.max()), self.max_steps)
        fields = {
            name: jnp.asarray(np.swapaxes(array[slots, : longest + (name == "observation")], 0, 1))
            for name, array in self.arrays.items()
        }
        return EpisodeBatch(length=jnp.asarray(length), **fields)

    def _write(self, slot: int, episode: Episode) -> None:
        steps = len(episode)
        for name, array in self.arrays.items():
            kept = steps + (name == "observation")
            array[slot, :kept] = getattr(episode, name)
            if name != "observation":
                array[slot, kept:] = 0
        self.length[slot] = steps

    def _copy(self, source: int, target: int) -> None:
        for array in (*self.arrays.values(), self.length):
            array[target] = array[source]


def padded(episodes: Sequence[Episode], max_steps: int, fields: Sequence[str] = ()) -> EpisodeBatch:
    """Episodes side by side, padded to few different lengths and numbers."""
    time = bucket(max(map(len, episodes)), max_steps)
    batch = bucket(len(episodes))
    length = np.zeros(batch, np.int32)
    length[: len(episodes)] = [len(episode) for episode in episodes]
    arrays = {}
    for name in (*ALWAYS, *fields):
        like = getattr(episodes[0], name)
        array = np.zeros((time + (name == "observation"), batch, *like.shape[1:]), like.dtype)
        for row, episode in enumerate(episodes):
            values = getattr(episode, name)
            array[: len(values), row] = values
        arrays[name] = jnp.asarray(array)
    return EpisodeBatch(length=jnp.asarray(length), **arrays)
