"""Finished episodes, kept in a bounded buffer and drawn from it in batches."""

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.credit.data.episode import Episode, EpisodeBatch
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.utils.buckets import bucket

__all__ = ["OF_EPISODES", "EpisodeBuffer", "longer", "padded", "padded_length", "side_by_side"]

PEERS = 4  # episodes of the same age for each one that is drawn
OF_EPISODES = ("length", "number", "seen")  # what is known of whole episodes
ALWAYS = ("observation", "reward", "discount")
SHORTEST = 64  # steps; to compile for fewer saves nothing


class EpisodeBuffer:
    """The newest episodes, and a sample of all older ones.

    Half of the slots are a queue of the newest episodes. What falls out of the queue enters the
    other half, the archive, with a chance that makes its sample even in the logarithm of time: as
    many episodes from 1,000 to 2,000 as from 10,000 to 20,000. A fair sample would forget, in
    proportion to how long ago it was, what the policy did before it was good; then nothing in the
    buffer would say what mistakes cost, and the model would drift.
    """

    def __init__(
        self,
        spec: EpisodeSpec,
        slots: int,
        fields: Sequence[str] = (),
        max_steps: int | None = None,
    ):
        """Reserves the memory; pages that no episode touches cost nothing.

        Args:
          spec: of the episodes.
          slots: how many are kept, at least 2.
          fields: what is kept of them beside observations, rewards and discounts: ``action``,
            ``log_probs``, ``value``.
          max_steps: how long an episode may be; by default as long as expected.
        """
        if slots < 2:
            raise ValueError(
                f"slots is {slots}; the buffer needs at least 2, one for the newest episode and "
                "one for an older one."
            )
        self.spec, self.fields = spec, fields
        longest = max_steps or spec.max_steps
        self.arrays: dict[str, np.ndarray] = {
            name: np.zeros((slots, longest + (name == "observation"), *shape), dtype)
            for name, (shape, dtype) in spec.entries.items()
            if name in ALWAYS or name in fields
        }
        self.length = np.zeros(slots, np.int32)
        self.number = np.zeros(slots, np.int64)
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

    def bytes_of(self, slots: int, max_steps: int) -> int:
        """What a buffer of another size would take, full."""
        per_step = sum(array[0, 0].nbytes for array in self.arrays.values())
        return slots * (max_steps + 1) * per_step

    def __len__(self) -> int:
        return int(np.count_nonzero(self.length))

    def add(self, episode: Episode, rng: np.random.Generator) -> None:
        """Adds the newest episode."""
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
        self.number[slot] = self.seen
        self.seen = self.seen + 1

    def resize(self, max_steps: int, slots: int, rng: np.random.Generator) -> None:
        """Makes room for longer episodes, or for more or fewer of them.

        The newest are kept, and a fair sample of all others.

        Args:
          max_steps: how long an episode may be from now on.
          slots: how many fit from now on.
          rng: draws the sample.
        """
        queue, archive = slots // 2, slots - slots // 2
        held = np.flatnonzero(self.length)
        new = self.number[held] >= self.seen - queue
        newest, others = held[new], held[~new]
        if len(others) > archive:
            others = rng.choice(others, archive, replace=False)
        # Where ``add`` expects them: the newest in turn, the others from the first place on.
        kept = np.concatenate([newest, others])
        places = np.concatenate([self.number[newest] % queue, queue + np.arange(len(others))])
        for name, array in self.arrays.items():
            moved = np.zeros((slots, *array.shape[1:]), array.dtype)
            moved[places] = array[kept]
            self.arrays[name] = longer(moved, max_steps + (name == "observation"))
        for name in ("length", "number"):
            array = getattr(self, name)
            moved = np.zeros(slots, array.dtype)
            moved[places] = array[kept]
            setattr(self, name, moved)

    def sample(
        self, size: int, rng: np.random.Generator, *, same_age: bool = False
    ) -> EpisodeBatch:
        """Draws episodes; see ``draw``."""
        fields = self.draw(size, rng, same_age=same_age)
        return EpisodeBatch(**jax.tree.map(jnp.asarray, fields))

    def draw(
        self,
        size: int,
        rng: np.random.Generator,
        *,
        same_age: bool = False,
        fewer: Callable[[int], int] | None = None,
    ) -> dict[str, np.ndarray]:
        """Draws episodes, padded to the longest of them, rounded up to one of few lengths.

        The result has the fields of an ``EpisodeBatch`` on the host: a compiled function takes
        them as they are, and faster than arrays that are put on the device one by one.

        Args:
          size: how many.
          rng: draws them.
          same_age: take episodes that were added at about the same time, which one policy, or
            nearly one, has played.
          fewer: how many of them to keep if they are padded to so many steps; by default, all.
        """
        held = np.flatnonzero(self.length)
        if same_age:
            held = held[np.argsort(self.number[held])]
            # Every state as often as any other: where a better policy plays longer episodes, most
            # of what it sees is in the few newest.
            length = self.length[held]
            middle = int(rng.choice(len(held), p=length / length.sum()))
            longest = padded_length(int(length[middle]), self.max_steps)
            # All of a window need not exist, else the oldest and the newest would be drawn too
            # rarely.
            width = min(PEERS * (size if fewer is None else fewer(longest)), len(held))
            held = held[np.clip(middle - width // 2, 0, len(held) - width) :][:width]
        slots = rng.choice(held, size)
        length = self.length[slots]
        longest = padded_length(int(length.max()), self.max_steps)
        if fewer is not None:
            slots, length = slots[: fewer(longest)], length[: fewer(longest)]
        fields = {
            name: np.swapaxes(array[slots, : longest + (name == "observation")], 0, 1)
            for name, array in self.arrays.items()
        }
        return {"length": length} | {k: np.ascontiguousarray(x) for k, x in fields.items()}

    def snapshot(self) -> dict[str, np.ndarray]:
        """All of it, in the arrays that are written to from now on."""
        return self.arrays | {name: getattr(self, name) for name in OF_EPISODES}

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        """Restores a snapshot."""
        self.arrays = {name: x for name, x in snapshot.items() if name not in OF_EPISODES}
        for name in OF_EPISODES:
            setattr(self, name, snapshot[name])

    def _write(self, slot: int, episode: Episode) -> None:
        steps = len(episode)
        for name, array in self.arrays.items():
            kept = steps + (name == "observation")
            array[slot, :kept] = getattr(episode, name)
            if name != "observation":
                array[slot, kept:] = 0
        self.length[slot] = steps

    def _copy(self, source: int, target: int) -> None:
        """Moves an episode; where there are no states of it, no memory is touched."""
        states = int(self.length[source]) + 1
        for name, array in self.arrays.items():
            kept = states if name == "observation" else array.shape[1]
            array[target, :kept] = array[source, :kept]
        for array in (self.length, self.number):
            array[target] = array[source]


def longer(array: np.ndarray, steps: int) -> np.ndarray:
    """The same rows, padded with room for more steps."""
    grown = np.zeros((len(array), steps, *array.shape[2:]), array.dtype)
    grown[:, : array.shape[1]] = array
    return grown


def padded_length(length: int, max_steps: int, *, base: int = 2) -> int:
    """One of few lengths, each of which is compiled for: all powers of the base, from 64 on."""
    return bucket(max(length, SHORTEST), max_steps, base=base)


def padded(episodes: Sequence[Episode], max_steps: int, fields: Sequence[str] = ()) -> EpisodeBatch:
    """Episodes side by side, padded to few different lengths and fewer numbers."""
    return EpisodeBatch(**jax.tree.map(jnp.asarray, side_by_side(episodes, max_steps, fields)))


def side_by_side(
    episodes: Sequence[Episode], max_steps: int, fields: Sequence[str] = (), *, base: int = 2
) -> dict[str, np.ndarray]:
    """Like ``padded``: the fields on the host, as ``EpisodeBuffer.draw`` gives them."""
    time = padded_length(max(map(len, episodes)), max_steps, base=base)
    batch = bucket(len(episodes), base=4)
    length = np.zeros(batch, np.int32)
    length[: len(episodes)] = [len(episode) for episode in episodes]
    arrays: dict[str, np.ndarray] = {"length": length}
    for name in (*ALWAYS, *fields):
        like = getattr(episodes[0], name)
        array = np.zeros((time + (name == "observation"), batch, *like.shape[1:]), like.dtype)
        for row, episode in enumerate(episodes):
            values = getattr(episode, name)
            array[: len(values), row] = values
        arrays[name] = array
    return arrays
