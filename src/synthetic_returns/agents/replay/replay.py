"""A replay of sequences: unrolls as they came, and sequences drawn from them by priority.

Every observation is kept once. A sequence begins where an unroll began, because there the state of
the recurrent core is known, and goes on into the unrolls behind it. It may hold the end of one
episode and the beginning of the next, as unrolls do; it never joins steps that did not follow each
other.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.agents.replay.sequences import Drawn, Past, steps_of, trajectory_of
from synthetic_returns.credit.method import Assignment
from synthetic_returns.types import StepType, Trajectory

__all__ = ["SequenceReplay"]

LEAST_PRIORITY = 1e-6  # of a sequence without any error: it may have one later


class SequenceReplay:
    """The newest unrolls of every stream, in arrays of a fixed size on the host.

    Attributes:
      arrays: by name, what is known of each step, ``[streams, rows, envs, ...]``.
      cores: the leaves of the core's state where unrolls begin, ``[streams, unrolls, envs, ...]``.
      count: unrolls that each stream has sent.
      priority: of the sequence that begins with each unroll in each environment, to the power of
        the exponent; 0 where none does.
    """

    def __init__(
        self,
        capacity: int,
        like: Trajectory,
        *,
        length: int,
        history: int = 0,
        priority_exponent: float = 0.0,
        importance_exponent: float = 0.0,
        streams: int = 1,
        credit: bool = False,
        seed: int = 0,
    ):
        """Reserves the memory; pages that no step touches cost nothing.

        Args:
          capacity: steps that are kept, at most.
          like: shapes and types of the unrolls.
          length: transitions of a sequence.
          history: steps before it that are drawn with it.
          priority_exponent: how much more often sequences of high priority are drawn.
          importance_exponent: how far importance weights make up for that.
          streams: batches of environments that send unrolls, each on its own.
          credit: whether unrolls have to be paid before they are drawn.
          seed: of the draws.
        """
        self._unroll, envs = like.action.shape
        self._length, self._history, self.seed = length, history, seed
        self._priority_exponent = priority_exponent
        self._importance_exponent = importance_exponent
        # A sequence ends before the last unroll that it needs: that one only shows its last state.
        self._span = -(-length // self._unroll) + 1
        self._blocks = capacity // (self._unroll * envs * streams)
        if self._blocks <= self._span:
            least = (self._span + 1) * self._unroll * envs * streams
            raise ValueError(
                f"replay.capacity is {capacity}; sequences of {length} steps in "
                f"{envs * streams} environments need at least {least}: raise it, or use fewer "
                "environments."
            )
        rows = (streams, self._blocks * self._unroll)
        self.arrays: dict[str, np.ndarray] = {
            name: np.zeros((*rows, *x.shape[1:]), x.dtype) for name, x in steps_of(like).items()
        }
        if credit:
            self.arrays["credit"] = np.zeros((*rows, envs), np.float32)
        self._structure = jax.tree.structure(like.core)
        blocks = (streams, self._blocks)
        self.cores = [np.zeros((*blocks, *x.shape), x.dtype) for x in jax.tree.leaves(like.core)]
        self.count = np.zeros(streams, np.int64)
        self._opened = np.zeros(streams, np.int64)  # the next that a sequence may begin with
        self._follows = np.zeros(blocks, bool)  # the unroll before
        self._paid = np.zeros(blocks, bool)
        self.priority = np.zeros((*blocks, envs))
        self._largest = np.ones(())
        self._draws = np.zeros((), np.int64)

    def add(self, trajectory: Trajectory, stream: int = 0, *, follows: bool = True) -> int:
        """Adds the newest unroll of a stream; returns its number in it.

        Args:
          trajectory: what happened.
          stream: whose.
          follows: whether it begins where the unroll before ended.
        """
        number = int(self.count[stream])
        block = number % self._blocks
        rows = slice(block * self._unroll, (block + 1) * self._unroll)
        for name, x in steps_of(trajectory).items():
            self.arrays[name][stream, rows] = np.asarray(x)[: self._unroll]
        for array, x in zip(self.cores, jax.tree.leaves(trajectory.core), strict=True):
            array[stream, block] = np.asarray(x)
        self._follows[stream, block] = follows and number > 0
        self._paid[stream, block] = "credit" not in self.arrays
        self.priority[stream, block] = 0
        self.count[stream] = number + 1
        if not follows:  # what waits for a successor, or for credit, waits in vain
            self._opened[stream] = number
        self._open(stream)
        return number

    def pay(self, number: int, credit: np.ndarray, stream: int = 0, known: Any = True) -> None:
        """Sets the credit of an unroll, if it is still there.

        Args:
          number: which one.
          credit: of its transitions.
          stream: whose it is.
          known: of which transitions; others keep what they have.
        """
        if number < self.oldest(stream):
            return
        block = number % self._blocks
        rows = slice(block * self._unroll, (block + 1) * self._unroll)
        before = self.arrays["credit"][stream, rows]
        self.arrays["credit"][stream, rows] = np.where(known, credit, before)
        self._paid[stream, block] = True
        self._open(stream)

    def sample(self, size: int) -> Drawn:
        """Draws sequences by priority, one from each of as many equal parts of their sum."""
        rng = np.random.default_rng([self.seed, int(self._draws)])
        self._draws += 1
        priority = self.priority.reshape(-1)
        total = np.cumsum(priority)
        points = (np.arange(size) + rng.random(size)) / size * total[-1]
        # Rounding may put the last point onto the sum itself.
        last = np.flatnonzero(priority)[-1]
        index = np.minimum(np.searchsorted(total, points, side="right"), last)
        chance = priority[index] / total[-1]
        weight = (len(self) * chance) ** -self._importance_exponent
        weight = jnp.asarray((weight / weight.max()).astype(np.float32))
        stream, block, env = np.unravel_index(index, self.priority.shape)
        steps = self._rows(stream, block, np.arange(self._length + 1)[:, None], env)
        credit = steps.pop("credit", None)
        core = jax.tree.unflatten(
            self._structure, [jnp.asarray(array[stream, block, env]) for array in self.cores]
        )
        assignment = None if credit is None else Assignment(jnp.asarray(credit[:-1]))
        trajectory, past = trajectory_of(steps, core), self._past(stream, block, env)
        return Drawn(index, trajectory, assignment, weight, past)

    def reprioritise(self, drawn: Drawn, priority: np.ndarray) -> None:
        """Sets the priorities of sequences that were learned from."""
        new = np.maximum(priority, LEAST_PRIORITY) ** self._priority_exponent
        self.priority.reshape(-1)[drawn.index] = new
        self._largest = np.asarray(max(self._largest, new.max()))

    def unrolls(self, stream: int, number: int, count: int) -> Trajectory:
        """Consecutive unrolls as one; without the states of the core."""
        block = np.asarray(number % self._blocks)
        steps = self._rows(np.asarray(stream), block, np.arange(count * self._unroll + 1), None)
        steps.pop("credit", None)
        return trajectory_of(steps, None)

    def runs(self, stream: int) -> list[range]:
        """The numbers of the unrolls whose last state is known, where they follow each other."""
        end = int(self.count[stream]) - 1
        runs: list[range] = []
        begin = number = self.oldest(stream)
        for number in range(begin, end):
            if not self._follows[stream, (number + 1) % self._blocks]:
                runs.append(range(begin, number))
                begin = number + 1
        return [run for run in (*runs, range(begin, end)) if run]

    def oldest(self, stream: int) -> int:
        """The number of the oldest unroll of a stream that is kept."""
        return max(0, int(self.count[stream]) - self._blocks)

    def __len__(self) -> int:
        """How many sequences can be drawn."""
        return int(np.count_nonzero(self.priority))

    @property
    def unroll_length(self) -> int:
        """Steps of an unroll."""
        return self._unroll

    @property
    def steps(self) -> int:
        """Environment steps that are kept."""
        envs = self.priority.shape[2]
        return int(np.minimum(self.count, self._blocks).sum()) * self._unroll * envs

    @property
    def bytes(self) -> int:
        """Memory of the steps that are kept."""
        per_step = sum(array[0, 0, 0].nbytes for array in self.arrays.values())
        per_unroll = sum(array[0, 0, 0].nbytes for array in self.cores)
        return self.steps * per_step + self.steps // self._unroll * per_unroll

    def snapshot(self) -> dict[str, Any]:
        """All that changes, in the arrays that are written to from now on."""
        return {
            "arrays": dict(self.arrays),
            "cores": list(self.cores),
            "count": self.count,
            "opened": self._opened,
            "follows": self._follows,
            "paid": self._paid,
            "priority": self.priority,
            "largest": self._largest,
            "draws": self._draws,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Restores a snapshot."""
        self.arrays, self.cores = dict(snapshot["arrays"]), list(snapshot["cores"])
        self.count, self._opened = snapshot["count"], snapshot["opened"]
        self._follows, self._paid = snapshot["follows"], snapshot["paid"]
        self.priority, self._largest = snapshot["priority"], snapshot["largest"]
        self._draws = snapshot["draws"]

    def _open(self, stream: int) -> None:
        """Makes sequences available once all their unrolls have arrived and been paid."""
        number = max(int(self._opened[stream]), self.oldest(stream))
        while number + self._span <= self.count[stream]:
            blocks = np.arange(number, number + self._span) % self._blocks
            if not self._paid[stream, blocks[:-1]].all():
                break
            self.priority[stream, blocks[0]] = self._largest
            number += 1
        self._opened[stream] = number

    def _past(self, stream: np.ndarray, block: np.ndarray, env: np.ndarray) -> Past | None:
        """The steps before sequences; what did not lead to them is not known."""
        if not self._history:
            return None
        back = np.arange(-self._history, 0)[:, None]
        unrolls = -(back // self._unroll)  # that lie between: 1 for those of the one before
        newest = self.count[stream] - 1
        number = newest - (newest - block) % self._blocks
        kept = number - np.arange(unrolls.max())[:, None] > np.maximum(
            0, self.count[stream] - self._blocks
        )
        follows = self._follows[stream, (block - np.arange(unrolls.max())[:, None]) % self._blocks]
        known = np.logical_and.accumulate(kept & follows)[unrolls[:, 0] - 1]
        rows = (block * self._unroll + back) % (self._blocks * self._unroll)
        first = self.arrays["step_type"][stream, rows, env] == StepType.FIRST
        observation = self.arrays["observation"][stream, rows, env]
        return Past(jnp.asarray(observation), jnp.asarray(first & known))

    def _rows(
        self, stream: np.ndarray, block: np.ndarray, steps: np.ndarray, env: Any
    ) -> dict[str, np.ndarray]:
        """Steps that begin with an unroll; of one environment each, or of all."""
        rows = (block * self._unroll + steps) % (self._blocks * self._unroll)
        at = (stream, rows) if env is None else (stream, rows, env)
        return {name: array[at] for name, array in self.arrays.items()}
