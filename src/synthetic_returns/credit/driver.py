"""The driver of a credit method: from streams of steps to the credit of every transition.

It follows running episodes, keeps the finished ones, trains the method on them and asks it for
credit. All engines and all wrappers use this one.
"""

import collections
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from synthetic_returns.credit.beside import Beside
from synthetic_returns.credit.compiled import compiled
from synthetic_returns.credit.data.buffer import EpisodeBuffer, padded, padded_length
from synthetic_returns.credit.data.episode import Episode, Segment
from synthetic_returns.credit.data.memory import slots_that_fit
from synthetic_returns.credit.data.recorder import Ended, EpisodeRecorder
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.hindsight import Hindsight
from synthetic_returns.credit.method import Assigner, Assignment, CreditMethod, Need
from synthetic_returns.credit.needs import check_needs, known
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.types import Key
from synthetic_returns.utils.buckets import bucket

__all__ = ["CreditDriver"]

EXAMINED_STATES = 10_000  # at once, at most: episodes of images may end in many places together
NO_EPISODES = Replay(slots=2, save=False)  # of a method that learns nothing
FIELDS = {Need.ACTIONS: "action", Need.LOG_PROBS: "log_probs", Need.VALUES: "value"}

Item = TypeVar("Item")


class CreditDriver(Generic[Item]):
    """A credit method at work.

    Attributes:
      method: which one.
      state: what it has learned.
      buffer: the finished episodes that it learns from.
      recent: the episodes that ended last, as the method sees them.
      frozen: whether recording and learning are switched off; always, if the method learns nothing.
    """

    def __init__(
        self,
        method: Assigner,
        spec: EpisodeSpec,
        view: View,
        *,
        max_episode_steps: int,
        num_envs: int,
        streams: int = 1,
        memory_mb: float | None = None,
        learn_every: int | None = None,
        overlap: bool = False,
        recent: int = 0,
        segment_length: int = 1,
        example: Callable[[], Item | None] = lambda: None,
        key: Key,
    ):
        """Draws the parameters and reserves the memory.

        Args:
          method: the method.
          spec: of the episodes, as the view shows them.
          view: what the method sees of them.
          max_episode_steps: the longest episode, before it is thinned.
          num_envs: environments of each stream.
          streams: batches of environments that are followed, each on its own.
          memory_mb: upper bound of the memory for episodes: where as many as the method asks for do
            not fit, fewer are kept, and longer episodes than expected are fine. Without it they
            are an error.
          learn_every: finished episodes wait until there are so many, and are then learned from
            together, never more than this at once; None learns from whatever has ended.
          overlap: learn in a thread of its own, and pay by what was known before the newest
            episodes until others are learned from, so that nobody waits. Runs are repeated exactly:
            how far payments lag behind does not depend on how long updates take.
          recent: how many finished episodes are kept to be looked at.
          segment_length: transitions of a segment, and
          example: makes an item like those that ``follow`` will be given: for a snapshot that is
            read from a file, and holds what waits for the end of episodes.
          key: consumed here.
        """
        check_needs(method, spec)
        init_key, sample_key = jax.random.split(key)
        self.method, self.view, self.spec = method, view, spec
        self.max_episode_steps = max_episode_steps
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
            self._fitting = functools.partial(
                slots_that_fit, memory_mb, slots, num_envs * streams, spec
            )
            slots = self._fitting(spec.max_steps)
        self.buffer = EpisodeBuffer(spec, slots, self._fields)
        self.seed = int(jax.random.randint(sample_key, (), 0, 2**31 - 1))
        self.updates = 0
        self.updates_owed = 0.0
        self.frozen = not self._learns
        self._learn_every = learn_every
        self._beside = Beside() if overlap else None
        self._waiting: collections.deque[Episode] = collections.deque(maxlen=self._replay.slots)
        self.recent: collections.deque[Episode] = collections.deque(maxlen=recent)
        self._metrics: dict[str, Float[Array, ""]] = {}
        self._num_envs = num_envs
        self.recorders = [
            EpisodeRecorder(spec, view, num_envs, max_episode_steps, self._fitting)
            for _ in range(streams)
        ]
        self._in_hindsight = Need.WHOLE_EPISODES in method.needs
        self._held: list[Hindsight[Item]] = [
            Hindsight(method.gives, num_envs, spec.num_actions) for _ in range(streams)
        ]
        self._segment_length, self._example = segment_length, example
        self._carries = [self._start(num_envs) for _ in range(streams)]

    @property
    def state(self) -> Any:
        """What the method has learned; the next update takes its arrays."""
        self._finish()
        return self._functions.state(self._arrays)

    @state.setter
    def state(self, state: Any) -> None:
        arrays, rest = eqx.partition(state, eqx.is_array)
        self._arrays, structure = jax.tree.flatten(arrays)
        self._before: list[Array] | None = None  # what was known before the newest episodes
        rest_leaves, rest_structure = jax.tree.flatten(rest)
        self._functions = compiled(self.method, structure, tuple(rest_leaves), rest_structure)

    def follow(
        self, segment: Segment, item: Item, stream: int = 0
    ) -> list[tuple[Item, Assignment]]:
        """Takes in a segment: learns from the episodes that end in it, and gives its credit.

        Args:
          segment: what happened, as the view shows it; its last state is the first of the next.
          item: what the credit is for; given back with it.
          stream: whose environments these are.

        Returns:
          The items whose credit is known. Of a method that needs complete episodes, these are
          earlier ones: an item waits until all episodes in it have ended.
        """
        ended = self.observe(segment, stream)
        if self._in_hindsight:
            held = self._held[stream]
            held.add(len(segment.reward), item)
            self._settle(held, ended)
            return held.release(self.recorders[stream].length)
        credit, self._carries[stream] = self._credit(self._carries[stream], segment)
        return [(item, credit)]

    def rewards(self, segment: Segment) -> Float[Array, "time batch"]:
        """Takes in a segment as ``follow`` does: the rewards of a method that pays at once."""
        self.observe(segment)
        (reward, _), self._carries[0] = self._assigned(self._carries[0], segment)
        return reward

    def observe(self, segment: Segment, stream: int = 0) -> list[Ended]:
        """Takes in a segment as ``follow`` does, and gives no credit: the episodes that ended."""
        if self.frozen and not self._in_hindsight:
            return []
        ended = list(self.recorders[stream].record(_on_host(segment)))
        if not self.frozen:
            episodes = [one.episode for one in ended]
            self._waiting.extend(episodes)
            self.recent.extend(episodes)
            enough = len(self._waiting) if self._learn_every is None else self._learn_every
            if len(self._waiting) >= enough:
                self.learn([self._waiting.popleft() for _ in range(enough)])
        return ended

    def pay_again(self, segments: Iterable[Segment]) -> Iterator[Assignment]:
        """The credit of consecutive segments by what is known now; nothing is learned from them.

        Of a method that needs complete episodes, the segments at the end are left out in which
        episodes are still running.
        """
        if not self._in_hindsight:
            carry = self._start(self._num_envs)
            for segment in segments:
                credit, carry = self._credit(carry, segment)
                yield credit
            return
        recorder = EpisodeRecorder(self.spec, self.view, self._num_envs, self.max_episode_steps)
        held: Hindsight[None] = Hindsight(self.method.gives, self._num_envs, self.spec.num_actions)
        for segment in segments:
            held.add(len(segment.reward), None)
            self._settle(held, recorder.record(_on_host(segment)))
            for _, credit in held.release(recorder.length):
                yield credit

    def learn(self, episodes: Sequence[Episode]) -> None:
        """Takes in finished episodes, as the view shows them; trains as often as they are worth."""
        if not episodes:
            return
        for episode in episodes:
            _check_rewards(episode)
        if self._beside is None:
            self._learn_from(episodes)
            return
        self._finish()
        # Its arrays are taken by the first update.
        self._before = jax.block_until_ready(self._functions.copy(self._arrays))
        self._beside.do(lambda: self._learn_from(episodes))

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
        """Waits for what is being learned."""
        if self._beside is not None:
            self._beside.finish()

    def examine(self, episodes: Sequence[Episode]) -> None:
        """Lets the method compare episodes that it is not trained on with what it says of them."""
        if not episodes:
            return
        longest = max(map(len, episodes))
        max_steps = max(longest, self.buffer.max_steps)
        together = max(1, EXAMINED_STATES // padded_length(longest, max_steps))
        together = bucket(together + 1, base=4) // 4  # so that their number is not padded
        for start in range(0, len(episodes), together):
            some = padded(episodes[start : start + together], max_steps, self._fields)
            self._arrays = self._functions.examine(self._arrays, vars(some))

    def train(self, updates: int, rng: np.random.Generator | None = None) -> None:
        """Trains on the episodes of the buffer, so many times.

        Args:
          updates: how often.
          rng: draws the batches; by default a function of the seed and of what was learned.
        """
        rng = rng or np.random.default_rng([self.seed, int(self.buffer.seen), self.updates])
        replay = self._replay
        for _ in range(updates):
            batch = self.buffer.draw(replay.batch_size, rng, same_age=replay.same_age)
            draw = np.array([self.seed, self.updates], np.uint32)
            self._arrays, self._metrics = self._functions.learn(self._arrays, batch, draw)
            if self._beside is not None:  # what is paid meanwhile waits for one update at most
                jax.block_until_ready(self._arrays)
            self.updates += 1

    @property
    def can_grow(self) -> bool:
        """Whether the buffer makes room for episodes that are longer than expected."""
        return self._fitting is not None

    def make_room(self, steps: int, rng: np.random.Generator) -> None:
        """Lets the buffer grow to episodes of so many steps, if it is too small for them."""
        if steps <= self.buffer.max_steps or self._fitting is None:
            return
        steps = bucket(steps)
        self.buffer.resize(steps, min(self.buffer.slots, self._fitting(steps)), rng)

    def credit_at(
        self,
        observation: np.ndarray,
        arrived: np.ndarray,
        action: np.ndarray | None,
        time: np.ndarray,
    ) -> np.ndarray:
        """What single transitions earn now that do not end their episodes, ``[batch]``.

        Args:
          observation: the states that were left, as the view shows them.
          arrived: the states that were arrived in.
          action: what was done, where that is known.
          time: how long the episode of each had lasted.
        """
        number = len(time)
        rows = np.minimum(np.arange(bucket(number)), number - 1)
        time = time[rows].astype(np.int32)
        segment = Segment(
            observation=np.stack([observation[rows], arrived[rows]]),
            first=np.stack([time == 0, np.zeros(len(rows), bool)]),
            last=np.zeros((2, len(rows)), bool),
            reward=np.zeros((1, len(rows)), np.float32),
            discount=np.ones((1, len(rows)), np.float32),
            action=None if action is None else action[rows][None],
        )
        state = self._functions.state(self._known)
        carry = self.method.resume(state, jnp.asarray(time)), jnp.zeros(len(rows))
        assignment, _ = self._credit(carry, segment)
        return np.asarray(assignment.reward)[0, :number]

    def explain(self, episode: Episode) -> Explanation:
        """What the method says about every state of an episode, as the view shows it."""
        self._finish()
        batch = padded([episode], max(len(episode), self.buffer.max_steps), self._fields)
        explanation = self._functions.explain(self._arrays, vars(batch))
        states = len(episode) + 1

        def of_episode(term: Term) -> Term:
            values = term.values[:states, 0]
            values = values[:, :states] if term.kind == "pairs" else values
            return eqx.tree_at(lambda t: t.values, term, values)

        terms = {name: of_episode(term) for name, term in explanation.terms.items()}
        explanation = Explanation(terms, explanation.credit)
        # Terminal states earn nothing.
        return eqx.tree_at(
            lambda e: e.terms[e.credit].values,
            explanation,
            jnp.asarray(explanation.paid).at[-1].set(0),
        )

    def forget(self, stream: int) -> list[Item]:
        """The running episodes of a stream will not go on; gives the items that waited for them."""
        self.recorders[stream].forget()
        self._carries[stream] = self._start(self._num_envs)
        return self.give_up(stream)

    def give_up(self, stream: int) -> list[Item]:
        """Nobody needs the credit of what waits in a stream any longer; gives these items."""
        return self._held[stream].forget()

    def freeze(self) -> None:
        """Switches recording and learning off, for evaluation."""
        self.frozen = True
        for recorder in self.recorders:
            recorder.forget()

    def unfreeze(self) -> None:
        """Goes on learning, from the episodes that start from now on."""
        self.frozen = not self._learns

    def report(self) -> dict[str, float]:
        """Diagnostics: of the last update, of the state, and of the memory that episodes take."""
        self._finish()
        report = self._metrics | dict(self.method.report(self.state))
        report = {name: float(x) for name, x in report.items()}
        if not self._learns:
            return report
        return report | {
            "buffer_episodes": float(len(self.buffer)),
            "buffer_mb": self.buffer.bytes / 1e6,
        }

    def snapshot(self, *, running: bool = True) -> dict[str, Any]:
        """All that changes while learning, as a pytree of fixed shapes but for what waits.

        Args:
          running: with the running episodes of a single stream, and what waits for their end.
            They are of use only where the environments that they run in are saved too.
        """
        snapshot: dict[str, Any] = {
            "state": self.state,
            "updates": self.updates,
            "updates_owed": self.updates_owed,
        }
        if self._replay.save:
            snapshot["buffer"] = self.buffer.snapshot()
        if running:
            (recorder,), (snapshot["carry"],) = self.recorders, self._carries
            if self._learns or self._in_hindsight:
                snapshot["running"] = recorder.snapshot()
            if self._in_hindsight:
                (held,) = self._held
                snapshot["held"] = held.snapshot(self._segment_length, self._example)
        return snapshot

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Goes on from a snapshot."""
        self._finish()
        self.state = snapshot["state"]
        self.updates, self.updates_owed = snapshot["updates"], snapshot["updates_owed"]
        if "buffer" in snapshot:
            self.buffer.restore(snapshot["buffer"])
        if "running" in snapshot:
            self.recorders[0].restore(snapshot["running"])
        if "carry" in snapshot:
            self._carries[0] = snapshot["carry"]
        if "held" in snapshot:
            self._held[0].restore(snapshot["held"].items)
        self._waiting.clear()

    def _settle(self, held: Hindsight[Any], ended: Iterable[Ended]) -> None:
        """Gives episodes that ended in the newest segment their credit."""
        for one in ended:
            held.settle(one, self._credit_of(one.episode), self.view.stride)

    def _credit_of(self, episode: Episode) -> Assignment:
        """The credit of one complete episode, ``[T, 1]``."""
        batch = padded([episode], max(len(episode), self.buffer.max_steps), self._fields)
        time = jnp.arange(batch.observation.shape[0], dtype=jnp.int32)[:, None]
        whole = Segment(
            observation=batch.observation,
            first=time == 0,
            last=time >= batch.length[None],
            reward=batch.reward,
            discount=batch.discount,
            action=batch.action,
            log_probs=batch.log_probs,
            value=batch.value,
        )
        credit, _ = self._credit(self._start(1), whole)
        return jax.tree.map(lambda x: x[: len(episode)], credit)

    def _start(self, num_envs: int) -> tuple[Any, Array]:
        """What is carried along episodes: the method's own, and what they were paid so far."""
        return self.method.start(self.state, num_envs), jnp.zeros(num_envs)

    def _credit(self, carry: Any, segment: Segment) -> tuple[Assignment, Any]:
        (reward, advantage), carry = self._assigned(carry, segment)
        return Assignment(reward, advantage), carry

    def _assigned(self, carry: Any, segment: Segment) -> tuple[Any, Any]:
        return self._functions.assign(self._known, carry, vars(segment))

    @property
    def _known(self) -> list[Array]:
        """What credit is given by; nothing else is touched while something is learned."""
        return self._arrays if self._before is None else self._before


def _on_host(segment: Segment) -> Segment:
    """The segment in numpy's arrays."""
    if isinstance(segment.reward, np.ndarray):
        return segment
    return jax.tree.map(np.asarray, segment)


def _check_rewards(episode: Episode) -> None:
    """Refuses what would spoil all that was learned, and every later episode with it."""
    flawed = np.flatnonzero(~np.isfinite(episode.reward))
    if len(flawed):
        raise ValueError(
            f"the reward of step {flawed[0]} of an episode of {len(episode)} steps is "
            f"{episode.reward[flawed[0]]}; rewards must be finite: find where the environment "
            "produces it."
        )
