"""Whole episodes: cut out of unrolls as they finish, and kept in a bounded buffer."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from synthetic_returns.types import TimeStep
from synthetic_returns.utils.checks import check_positive

__all__ = ["Episode", "EpisodeBuffer", "EpisodeCutter"]

UNSEEN = -1  # the length of a running episode whose beginning is not known


@dataclasses.dataclass(frozen=True)
class Episode:
    """One finished episode: the states that have a successor, and the reward of leaving each.

    Attributes:
      observation: the states.
      reward: the reward of leaving each.
      action: what the agent did in each, where that is known; credit does not depend on it.
      every: how many steps apart the states are; rewards are sums from one to the next.
    """

    observation: np.ndarray
    reward: np.ndarray
    action: np.ndarray | None = None
    every: int = 1

    def __len__(self) -> int:
        return len(self.reward)

    def thinned(self, every: int) -> "Episode":
        """Every n-th state, with the sum of the rewards from it to the next one kept."""
        if self.every == every:
            return self
        if self.every != 1:
            raise ValueError(
                f"the states of an episode are {self.every} steps apart and have to be {every}; "
                "thin whole episodes only, or cut them with the same number."
            )
        kept = np.arange(0, len(self), every)
        action = None if self.action is None else self.action[kept]
        return Episode(self.observation[kept], np.add.reduceat(self.reward, kept), action, every)


class EpisodeCutter:
    """Puts the episodes of a batch of environments together from consecutive unrolls.

    An episode whose first step it did not see is left out.
    """

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        dtype: Any,
        batch: int,
        longest: int,
        remedy: str = "raise the task's episode_steps",
        *,
        every: int = 1,
        truncated_reward: float | None = None,
    ):
        """Allocates room for the running episodes.

        Args:
          observation_shape: shape of one observation.
          dtype: how observations are kept.
          batch: number of environments.
          longest: the largest number of states with a successor in an episode.
          remedy: what to do about longer ones, for the message.
          every: keep every n-th state; see ``Episode.thinned``.
          truncated_reward: taken for the last reward of an episode that was cut off, if given.
        """
        check_positive("longest", longest)
        self._remedy, self._longest = remedy, longest
        self._every, self._truncated_reward = every, truncated_reward
        kept = thinned_length(longest, every)
        self.observation = np.zeros((batch, kept, *observation_shape), dtype)
        self.reward = np.zeros((batch, kept), np.float32)
        self.length = np.full(batch, UNSEEN, np.int32)

    def cut(self, timestep: TimeStep) -> Iterator[Episode]:
        """Takes an unroll of ``T + 1`` steps ``[T + 1, B]`` and gives the episodes that ended."""
        observation, reward, first, last = (
            np.asarray(x)
            for x in (timestep.observation, timestep.reward, timestep.first, timestep.last)
        )
        if self._truncated_reward is not None:
            truncated = last & (np.asarray(timestep.discount) > 0)
            reward = np.where(truncated, np.float32(self._truncated_reward), reward)
        for t in range(len(reward) - 1):
            self.length[first[t]] = 0
            rows = np.flatnonzero(~last[t] & (self.length != UNSEEN))
            self.append(rows, observation[t, rows], reward[t + 1, rows])
            for row in rows[last[t + 1, rows]]:
                yield self.finish(row)

    def forget(self) -> None:
        """The running episodes will not go on: what comes next belongs to others."""
        self.length[:] = UNSEEN

    def append(self, rows: np.ndarray, observation: np.ndarray, reward: np.ndarray) -> None:
        """Adds a state, and the reward of leaving it, to the running episodes of some rows."""
        if np.any(self.length[rows] >= self._longest):
            raise ValueError(
                f"an episode is longer than {self._longest} steps, the longest that the episode "
                f"buffer was made for; {self._remedy}."
            )
        index, between = np.divmod(self.length[rows], self._every)
        kept = between == 0
        self.observation[rows[kept], index[kept]] = observation[kept]
        self.reward[rows, index] = np.where(kept, 0, self.reward[rows, index]) + reward
        self.length[rows] += 1

    def finish(self, row: int | np.integer) -> Episode:
        """The episode of a row, as far as it has come; the next one starts from nothing."""
        kept = thinned_length(int(self.length[row]), self._every)
        self.length[row] = 0
        return Episode(
            self.observation[row, :kept].copy(), self.reward[row, :kept].copy(), every=self._every
        )


class EpisodeBuffer:
    """The newest episodes, and a sample of all older ones.

    Half of the slots are a queue of the newest episodes. What falls out of the queue enters the
    other half, the archive, with a chance that makes its sample even in the logarithm of time: as
    many episodes from 1,000 to 2,000 as from 10,000 to 20,000. A fair sample would forget, in
    proportion to how long ago it was, what the policy did before it was good; then nothing in the
    buffer would say what mistakes cost, and the model would drift.
    """

    def __init__(self, observation_shape: tuple[int, ...], dtype: Any, slots: int, longest: int):
        """Reserves the memory; pages that no episode touches cost nothing.

        Args:
          observation_shape: shape of one observation.
          dtype: how observations are kept.
          slots: how many episodes are kept, at least 2.
          longest: the largest number of states in an episode.
        """
        if slots < 2:
            raise ValueError(
                f"slots is {slots}; the buffer needs at least 2, one for the newest episode and "
                "one for an older one."
            )
        self.observation = np.zeros((slots, longest, *observation_shape), dtype)
        self.reward = np.zeros((slots, longest), np.float32)
        self.length = np.zeros(slots, np.int32)
        self.seen = np.zeros((), np.int64)

    @property
    def slots(self) -> int:
        """How many episodes fit."""
        return len(self.length)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The shape of one observation."""
        return self.observation.shape[2:]

    @property
    def bytes(self) -> int:
        """Memory in use by the episodes held."""
        per_step = self.observation[0, 0].nbytes + self.reward.itemsize
        return int(self.length.sum()) * per_step

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

    def sample(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Draws episodes: observations ``[L, size, ...]``, rewards ``[L, size]``, lengths.

        L is the longest of the drawn episodes, rounded up so that it takes few different values.
        """
        slots = rng.choice(np.flatnonzero(self.length), size)
        length = self.length[slots]
        longest = bucket(int(length.max()), self.reward.shape[1])
        observation = np.moveaxis(self.observation[slots, :longest], 0, 1)
        return observation, self.reward[slots, :longest].T, length

    def _write(self, slot: int, episode: Episode) -> None:
        steps = len(episode)
        self.observation[slot, :steps] = episode.observation
        self.reward[slot, :steps] = episode.reward
        self.reward[slot, steps:] = 0
        self.length[slot] = steps

    def _copy(self, source: int, target: int) -> None:
        for array in (self.observation, self.reward, self.length):
            array[target] = array[source]


def thinned_length(length: int, every: int) -> int:
    """How many states are left of an episode of which every n-th is kept."""
    return -(-length // every)


def bucket(length: int, longest: int) -> int:
    """Rounds a length up to one of few sizes: steps of a quarter of the next power of two."""
    step = max(1, 2 ** max(0, (length - 1).bit_length() - 2))
    return min(longest, -(-length // step) * step)
