"""A credit method with its replay buffer: stores finished episodes and trains on them."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from synthetic_returns.credit.beside import Beside
from synthetic_returns.credit.compiled import compiled
from synthetic_returns.credit.data.buffer import EpisodeBuffer, padded_length, side_by_side
from synthetic_returns.credit.data.episode import Episode, Segment
from synthetic_returns.credit.data.memory import slots_that_fit
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.method import Assigner, Assignment, CreditMethod, Need
from synthetic_returns.credit.needs import check_needs, known
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.types import Key
from synthetic_returns.utils.buckets import bucket

__all__ = ["EpisodeLearner"]

EXAMINED_STATES = 10_000  # at once, at most: episodes of images may end in many places together
EXAMINED_BASE = 4  # of the lengths: an episode is examined once, and that is soon done
NO_EPISODES = Replay(slots=2, save=False)  # of a method that learns nothing
FIELDS = {Need.ACTIONS: "action", Need.LOG_PROBS: "log_probs", Need.VALUES: "value"}


class EpisodeLearner:
    """A credit method, its state, and the replay buffer of finished episodes that it learns from.

    Attributes:
      method: the method.
      spec: sizes of the episodes, as the method sees them.
      state: what it has learned.
      buffer: replay buffer of finished episodes.
      seed: seed of the sampled batches.
      updates: number of updates so far.
      updates_owed: fraction of an update that the episodes so far are worth beyond these.
    """

    def __init__(
        self,
        method: Assigner,
        spec: EpisodeSpec,
        *,
        running: int,
        memory_mb: float | None = None,
        overlap: bool = False,
        key: Key,
    ):
        """Draws the parameters and reserves the memory.

        Args:
          method: the method.
          spec: sizes of the episodes, as the method sees them.
          running: number of running episodes, which also take memory.
          memory_mb: memory limit for episodes, if there is one.
          overlap: train in a separate thread.
          key: consumed here.
        """
        check_needs(method, spec)
        init_key, sample_key = jax.random.split(key)
        self.method, self.spec = method, spec
        # Updates are made in place, so every array has to be one of its own.
        self.state = jax.tree.map(
            lambda x: jnp.array(x) if eqx.is_array(x) or isinstance(x, np.ndarray) else x,
            method.init(spec, init_key),
        )
        used = method.needs | known(method, spec)
        self._fields = [FIELDS[need] for need in FIELDS if need in used]
        self._learns = isinstance(method, CreditMethod)
        self._replay = method.replay if isinstance(method, CreditMethod) else NO_EPISODES
        self._fitting: Callable[[int], int] | None = None
        slots = self._replay.slots
        if memory_mb is not None:
            self._fitting = functools.partial(slots_that_fit, memory_mb, slots, running, spec)
            slots = self._fitting(spec.max_steps)
        self.buffer = EpisodeBuffer(spec, slots, self._fields)
        self.seed = int(jax.random.randint(sample_key, (), 0, 2**31 - 1))
        self.updates = 0
        self.updates_owed = 0.0
        self._beside = Beside() if overlap else None
        self._metrics: dict[str, Float[Array, ""]] = {}

    @property
    def state(self) -> Any:
        """What the method has learned. The next update invalidates its arrays."""
        self._finish()
        return self._functions.state(self._arrays)

    @state.setter
    def state(self, state: Any) -> None:
        arrays, rest = eqx.partition(state, eqx.is_array)
        self._arrays, structure = jax.tree.flatten(arrays)
        self._before: list[Array] | None = None  # what was known before the newest episodes
        rest_leaves, rest_structure = jax.tree.flatten(rest)
        self._functions = compiled(
            self.method,
            self.spec.frames is not None,
            self.spec.stride,
            structure,
            tuple(rest_leaves),
            rest_structure,
        )

    def learn(self, episodes: Sequence[Episode]) -> None:
        """Adds finished episodes to the buffer; makes ``updates_per_episode`` updates for each."""
        if not episodes:
            return
        for episode in episodes:
            _check_rewards(episode)
        if self._beside is None:
            self._learn_from(episodes)
            return
        self._finish()
        # The first update invalidates the arrays of the state.
        self._before = jax.block_until_ready(self._functions.copy(self._arrays))
        self._beside.do(lambda: self._learn_from(episodes))

    def examine(self, episodes: Sequence[Episode]) -> None:
        """Lets the method measure its predictions on episodes that it has not been trained on."""
        if not episodes:
            return
        longest = max(map(len, episodes))
        max_steps = max(longest, self.buffer.max_steps)
        padded = padded_length(longest, max_steps, base=EXAMINED_BASE)
        together = max(1, EXAMINED_STATES // padded)
        together = bucket(together + 1, base=4) // 4  # so that their number is not padded
        for start in range(0, len(episodes), together):
            some = episodes[start : start + together]
            batch = side_by_side(some, max_steps, self._fields, base=EXAMINED_BASE)
            self._arrays = self._functions.examine(self._arrays, batch)

    def train(self, updates: int, rng: np.random.Generator | None = None) -> None:
        """Trains on batches from the buffer.

        Args:
          updates: number of updates.
          rng: draws the batches; by default it depends on the seed and the updates so far.
        """
        rng = rng or np.random.default_rng([self.seed, int(self.buffer.seen), self.updates])
        replay = self._replay
        for _ in range(updates):
            batch = self.buffer.draw(
                replay.batch_size, rng, same_age=replay.same_age, fewer=replay.batch_of
            )
            draw = np.array([self.seed, self.updates], np.uint32)
            self._arrays, self._metrics = self._functions.learn(self._arrays, batch, draw)
            if self._beside is not None:  # so that credit waits for one update at most
                jax.block_until_ready(self._arrays)
            self.updates += 1

    @property
    def can_grow(self) -> bool:
        """Whether the buffer can grow for episodes that are longer than expected."""
        return self._fitting is not None

    def make_room(self, steps: int, rng: np.random.Generator) -> None:
        """Grows the buffer, if necessary, to hold episodes of ``steps`` steps."""
        if steps <= self.buffer.max_steps or self._fitting is None:
            return
        steps = bucket(steps)
        self.buffer.resize(steps, min(self.buffer.slots, self._fitting(steps)), rng)

    def explain(self, episode: Episode) -> Explanation:
        """The method's named terms for every state of an episode, as the view shows it."""
        self._finish()
        batch = side_by_side([episode], max(len(episode), self.buffer.max_steps), self._fields)
        explanation = self._functions.explain(self._arrays, batch)
        states = len(episode) + 1

        def of_episode(term: Term) -> Term:
            values = term.values[:states, 0]
            values = values[:, :states] if term.kind == "pairs" else values
            return eqx.tree_at(lambda t: t.values, term, values)

        terms = {name: of_episode(term) for name, term in explanation.terms.items()}
        return Explanation(terms, explanation.credit).earned(jnp.arange(states) == states - 1)

    def report(self) -> dict[str, float]:
        """Diagnostics of the last update and the state, and the size of the buffer."""
        self._finish()
        report = self._metrics | dict(self.method.report(self.state))
        report = {name: float(x) for name, x in report.items()}
        if not self._learns:
            return report
        return report | {
            "buffer_episodes": float(len(self.buffer)),
            "buffer_mb": self.buffer.bytes / 1e6,
        }

    def snapshot(self) -> dict[str, Any]:
        """Everything that changes during learning, as a pytree of fixed shapes."""
        snapshot: dict[str, Any] = {
            "state": self.state,
            "updates": self.updates,
            "updates_owed": self.updates_owed,
        }
        if self._replay.save:
            snapshot["buffer"] = self.buffer.snapshot()
        return snapshot

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continues from a snapshot."""
        self._finish()
        self.state = snapshot["state"]
        self.updates, self.updates_owed = snapshot["updates"], snapshot["updates_owed"]
        if "buffer" in snapshot:
            self.buffer.restore(snapshot["buffer"])

    def _learn_from(self, episodes: Sequence[Episode]) -> None:
        replay, rng = self._replay, np.random.default_rng([self.seed, int(self.buffer.seen)])
        self.make_room(max(map(len, episodes)), rng)
        self.examine(episodes)
        for episode in episodes:
            self.buffer.add(episode, rng)
        if len(self.buffer) >= min(replay.warmup, self.buffer.slots):
            self.updates_owed += replay.updates_per_episode * len(episodes)
        updates = int(self.updates_owed)
        self.updates_owed -= updates
        self.train(updates, rng)

    def _finish(self) -> None:
        """Waits until the training thread has finished."""
        if self._beside is not None:
            self._beside.finish()

    def _credit_of(self, episode: Episode) -> Assignment:
        """The credit of one complete episode, ``[T, 1]``."""
        batch = side_by_side([episode], max(len(episode), self.buffer.max_steps), self._fields)
        credit, _ = self._credit(self._start(1), Segment.of_episodes(**batch))
        return jax.tree.map(lambda x: x[: len(episode)], credit)

    def _start(self, num_envs: int) -> tuple[Any, Array]:
        """The carry of episodes: the method's own, and the credit paid so far."""
        return self.method.start(self.state, num_envs), jnp.zeros(num_envs)

    def _credit(self, carry: Any, segment: Segment) -> tuple[Assignment, Any]:
        (reward, advantage), carry = self._assigned(carry, segment)
        return Assignment(reward, advantage), carry

    def _assigned(self, carry: Any, segment: Segment) -> tuple[Any, Any]:
        return self._functions.assign(self._known, carry, vars(segment))

    @property
    def _known(self) -> list[Array]:
        """The arrays that credit is computed with; safe to read during training in a thread."""
        return self._arrays if self._before is None else self._before


def _check_rewards(episode: Episode) -> None:
    """Refuses rewards that are not finite: they would spoil the model for all later episodes."""
    flawed = np.flatnonzero(~np.isfinite(episode.reward))
    if len(flawed):
        raise ValueError(
            f"the reward of step {flawed[0]} of an episode of {len(episode)} steps is "
            f"{episode.reward[flawed[0]]}; rewards must be finite: find where the environment "
            "produces it."
        )
