"""Running episodes: recorded step by step from a stream, passed on when they end."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from synthetic_returns.credit.data.buffer import longer
from synthetic_returns.credit.data.episode import Episode, Segment
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View, joined
from synthetic_returns.utils.checks import check_positive

__all__ = ["Ended", "EpisodeRecorder"]

UNSEEN = -1  # the length of a running episode whose beginning is not known
OPTIONAL = ("action", "log_probs", "value")


class Ended(NamedTuple):
    """An episode that has ended.

    Attributes:
      row: in which environment.
      at: the transition of the segment that ended it.
      steps: how many it took, before it was thinned.
      episode: what is kept of it.
    """

    row: int
    at: int
    steps: int
    episode: Episode


class EpisodeRecorder:
    """Puts the episodes of a batch of environments together from consecutive segments.

    This is where a view thins episodes and replaces the rewards of those that were cut off. An
    episode whose first step was not seen is left out.
    """

    def __init__(
        self,
        spec: EpisodeSpec,
        view: View,
        num_envs: int,
        max_episode_steps: int,
        check_growth: Callable[[int], object] | None = None,
    ):
        """Allocates room for the running episodes.

        Args:
          spec: of the episodes, as the view shows them.
          view: what is kept of them.
          num_envs: number of environments.
          max_episode_steps: the largest number of steps in an episode, before it is thinned.
          check_growth: makes room for longer ones, if so many states are fine by it; without it a
            longer one is an error.
        """
        check_positive("max_episode_steps", max_episode_steps)
        self._max_episode_steps, self._view = max_episode_steps, view
        self._check_growth = check_growth
        self._arrays: dict[str, np.ndarray] = {
            name: np.zeros((num_envs, spec.max_steps + (name == "observation"), *shape), dtype)
            for name, (shape, dtype) in spec.entries.items()
        } | {"length": np.full(num_envs, UNSEEN, np.int32)}

    @property
    def length(self) -> np.ndarray:
        """Steps of each running episode so far; -1 where its beginning was not seen."""
        return self._arrays["length"]

    @property
    def bytes(self) -> int:
        """Memory in use by the running episodes."""
        states = int(self._view.kept(np.maximum(self.length, 0)).sum())
        per_state = sum(x[0, 0].nbytes for name, x in self._arrays.items() if name != "length")
        return states * per_state

    def record(self, segment: Segment) -> Iterator[Ended]:
        """Adds a segment of numpy arrays; returns the episodes that ended in it."""
        view, length = self._view, self.length
        observation, first, last, reward, discount = (
            np.asarray(getattr(segment, name))
            for name in ("observation", "first", "last", "reward", "discount")
        )
        of_steps = {"reward": view.rewards(reward, last[1:], discount), "discount": discount}
        known = {name: getattr(segment, name) for name in OPTIONAL if name in self._arrays}
        of_states = {name: np.asarray(x) for name, x in known.items() if x is not None}
        for t in range(len(reward)):
            length[first[t]] = 0
            rows = np.flatnonzero(~last[t] & (length != UNSEEN))
            self._append(
                rows,
                {name: x[t, rows] for name, x in of_steps.items()},
                {"observation": observation[t, rows]}
                | {name: x[t, rows] for name, x in of_states.items()},
            )
            for row in rows[last[t + 1, rows]]:
                steps = int(length[row])
                yield Ended(int(row), t, steps, self._finish(row, observation[t + 1, row]))

    def forget(self) -> None:
        """The running episodes will not go on: what comes next belongs to others."""
        self.length[:] = UNSEEN

    def snapshot(self) -> dict[str, np.ndarray]:
        """The running episodes, in the arrays that are written to from now on."""
        return dict(self._arrays)

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        """Restores a snapshot."""
        self._arrays = dict(snapshot)

    def _append(
        self, rows: np.ndarray, of_steps: dict[str, np.ndarray], of_states: dict[str, np.ndarray]
    ) -> None:
        """Adds a state of each row, with its action and reward."""
        length = self.length[rows]
        if np.any(length >= self._max_episode_steps):
            self._grow()
        self.length[rows] += 1
        if self._view.stride == 1:
            for name, x in (of_steps | of_states).items():
                self._arrays[name][rows, length] = x
            return
        index, kept = self._view.place(length)
        for name, x in of_states.items():
            self._arrays[name][rows[kept], index[kept]] = x[kept]
        for name, x in of_steps.items():
            so_far = self._arrays[name][rows, index]
            self._arrays[name][rows, index] = joined(name, so_far, x, kept)

    def _grow(self) -> None:
        """Doubles the room for each episode."""
        if self._check_growth is None:
            raise ValueError(
                f"an episode is longer than {self._max_episode_steps} steps, the most that there "
                "is room for; raise the task's max_episode_steps."
            )
        self._max_episode_steps *= 2
        steps = self._view.kept(self._max_episode_steps)
        self._check_growth(steps)
        for name, array in self._arrays.items():
            if name != "length":
                self._arrays[name] = longer(array, steps + (name == "observation"))

    def _finish(self, row: Any, terminal: np.ndarray | np.generic) -> Episode:
        """The episode of a row; the next one starts from nothing."""
        kept = self._view.kept(int(self.length[row]))
        self._arrays["observation"][row, kept] = terminal
        self.length[row] = 0
        fields = {
            name: array[row, : kept + (name == "observation")].copy()
            for name, array in self._arrays.items()
            if name != "length"
        }
        return Episode(stride=self._view.stride, **fields)
