"""Items that wait until the episodes in them have ended, and their credit is known."""

import collections
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.credit.data.recorder import Ended
from synthetic_returns.credit.method import Assignment, Gives
from synthetic_returns.credit.view import View
from synthetic_returns.utils.several import Several

__all__ = ["Hindsight"]

Item = TypeVar("Item")


@dataclasses.dataclass(frozen=True, eq=False)
class _Waiting(Generic[Item]):
    """A segment that waits: when it began, what it is for, and its credit as far as it is known."""

    start: int
    item: Item
    credit: np.ndarray


class Hindsight(Generic[Item]):
    """The segments of one stream, in order, each until all episodes that it is part of are over.

    An episode whose beginning was not seen is not waited for, and earns nothing.
    """

    def __init__(self, gives: Gives, num_envs: int, num_actions: int | None):
        """Nothing waits yet.

        Args:
          gives: what kind of credit it is.
          num_envs: environments of the stream.
          num_actions: of the task, for advantages.
        """
        self._name = "advantage" if gives is Gives.ADVANTAGE else "reward"
        self._shape = (num_envs, num_actions or 0) if gives is Gives.ADVANTAGE else (num_envs,)
        self._waiting: collections.deque[_Waiting[Item]] = collections.deque()
        self._now = 0  # transitions so far

    @property
    def bytes(self) -> int:
        """Memory of what waits."""
        kept = [(waiting.item, waiting.credit) for waiting in self._waiting]
        return sum(x.nbytes for x in jax.tree.leaves(kept) if isinstance(x, jax.Array | np.ndarray))

    def add(self, length: int, item: Item) -> None:
        """Adds the newest segment."""
        credit = np.zeros((length, *self._shape), np.float32)
        self._waiting.append(_Waiting(self._now, item, credit))
        self._now += length

    def settle(self, ended: Ended, credit: Assignment, view: View) -> None:
        """An episode has ended in the newest segment.

        Args:
          ended: which one.
          credit: of all its transitions, ``[T, 1]``.
          view: what is kept of episodes. A reward is earned where the next kept state arrives, an
            advantage where the action was taken.
        """
        values = np.asarray(getattr(credit, self._name))[:, 0]
        end = self._waiting[-1].start + ended.at + 1
        begin = end - ended.steps
        _, is_kept = view.place(np.arange(ended.steps))
        taken = np.flatnonzero(is_kept)
        arrived = np.append(taken[1:], ended.steps) - 1
        times = begin + (taken if self._name == "advantage" else arrived)
        for waiting in self._waiting:
            within = (times >= waiting.start) & (times < waiting.start + len(waiting.credit))
            waiting.credit[times[within] - waiting.start, ended.row] = values[within]

    def release(self, running: np.ndarray) -> list[tuple[Item, Assignment]]:
        """What need not wait any longer.

        Args:
          running: steps of each running episode so far; negative where it is not waited for.
        """
        oldest = self._now - max(0, int(running.max(initial=0)))
        released = []
        while self._waiting and self._waiting[0].start + len(self._waiting[0].credit) <= oldest:
            waiting = self._waiting.popleft()
            credit = Assignment(**{self._name: jnp.asarray(waiting.credit)})
            released.append((waiting.item, credit))
        return released

    def snapshot(self, length: int, example: Callable[[], Item | None]) -> Several[dict[str, Any]]:
        """What waits, with the credit that is known so far, in arrays that will be written to.

        Args:
          length: transitions of a segment.
          example: makes an item like those that wait.
        """

        def one() -> dict[str, Any]:
            return {"item": example(), "credit": np.zeros((length, *self._shape), np.float32)}

        waiting = [{"item": waiting.item, "credit": waiting.credit} for waiting in self._waiting]
        return Several(waiting, one)

    def restore(self, waiting: Sequence[dict[str, Any]]) -> None:
        """Goes on from a snapshot: these wait, in this order."""
        self._waiting.clear()
        for one in waiting:
            self._waiting.append(_Waiting(self._now, one["item"], one["credit"]))
            self._now += len(one["credit"])

    def forget(self) -> list[Item]:
        """Drops all that waits."""
        items = [waiting.item for waiting in self._waiting]
        self._waiting.clear()
        return items
