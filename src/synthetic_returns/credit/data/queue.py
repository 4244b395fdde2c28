"""Finished episodes that wait to be learned from together."""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from synthetic_returns.credit.data.buffer import longer
from synthetic_returns.credit.data.episode import Episode
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.utils.several import Several

__all__ = ["EpisodeQueue"]


class EpisodeQueue:
    """The episodes that ended last, oldest first; of too many, the oldest are dropped."""

    def __init__(self, spec: EpisodeSpec, slots: int):
        """Nothing waits yet.

        Args:
          spec: of the episodes.
          slots: how many may wait.
        """
        self._spec = spec
        self._episodes: collections.deque[Episode] = collections.deque(maxlen=slots)

    def __len__(self) -> int:
        return len(self._episodes)

    def __iter__(self) -> Iterator[Episode]:
        return iter(self._episodes)

    @property
    def bytes(self) -> int:
        """Memory of the episodes."""
        return sum(x.nbytes for episode in self for x in _arrays(episode).values())

    def add(self, episodes: Iterable[Episode]) -> None:
        """Adds the newest episodes."""
        self._episodes.extend(episodes)

    def take(self, number: int) -> list[Episode]:
        """Takes out the oldest episodes."""
        return [self._episodes.popleft() for _ in range(number)]

    def snapshot(self) -> Several[dict[str, np.ndarray]]:
        """What waits, padded to one length."""
        max_steps = max(self._spec.max_steps, *map(len, self), 0)

        def example() -> dict[str, np.ndarray]:
            arrays = {
                name: np.zeros((max_steps + (name == "observation"), *shape), dtype)
                for name, (shape, dtype) in self._spec.entries.items()
            }
            return arrays | {"length": np.zeros((), np.int32)}

        def item(episode: Episode) -> dict[str, np.ndarray]:
            arrays = {
                name: longer(x[None], max_steps + (name == "observation"))[0]
                for name, x in _arrays(episode).items()
            }
            return arrays | {"length": np.array(len(episode), np.int32)}

        return Several([item(episode) for episode in self], example)

    def restore(self, items: Sequence[dict[str, np.ndarray]]) -> None:
        """Goes on from a snapshot: these wait, in this order."""
        self._episodes.clear()
        for item in items:
            steps = int(item["length"])
            fields = {
                name: np.asarray(x)[: steps + (name == "observation")]
                for name, x in item.items()
                if name != "length"
            }
            self._episodes.append(Episode(stride=self._spec.stride, **fields))


def _arrays(episode: Episode) -> dict[str, np.ndarray]:
    fields = {field.name: getattr(episode, field.name) for field in dataclasses.fields(episode)}
    return {name: x for name, x in fields.items() if isinstance(x, np.ndarray)}
