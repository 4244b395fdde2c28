"""The driver of a credit method: from streams of steps to the credit of every transition.

It follows running episodes, keeps the finished ones, trains the method on them and asks it for
credit. All engines and all wrappers use this one.
"""

import collections
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from synthetic_returns.credit.data.episode import Episode, Segment
from synthetic_returns.credit.data.recorder import Ended, EpisodeRecorder
from synthetic_returns.credit.hindsight import Hindsight
from synthetic_returns.credit.learner import EpisodeLearner
from synthetic_returns.credit.method import Assigner, Assignment, Need
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.types import Key
from synthetic_returns.utils.buckets import bucket

__all__ = ["CreditDriver"]

Item = TypeVar("Item")


class CreditDriver(EpisodeLearner, Generic[Item]):
    """A credit method at work.

    Attributes:
      method: which one.
      state: what it has learned.
      buffer: the finished episodes that it learns from.
      view: what it sees of them.
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
        super().__init__(
            method,
            spec,
            running=num_envs * streams,
            memory_mb=memory_mb,
            overlap=overlap,
            key=key,
        )
        self.view, self.max_episode_steps = view, max_episode_steps
        self.frozen = not self._learns
        self._learn_every = learn_every
        self._waiting: collections.deque[Episode] = collections.deque(maxlen=self._replay.slots)
        self.recent: collections.deque[Episode] = collections.deque(maxlen=recent)
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

    def snapshot(self, *, running: bool = True) -> dict[str, Any]:
        """All that changes while learning, as a pytree of fixed shapes but for what waits.

        Args:
          running: with the running episodes of a single stream, and what waits for their end.
            They are of use only where the environments that they run in are saved too.
        """
        snapshot = super().snapshot()
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
        super().restore(snapshot)
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


def _on_host(segment: Segment) -> Segment:
    """The segment in numpy's arrays."""
    if isinstance(segment.reward, np.ndarray):
        return segment
    return jax.tree.map(np.asarray, segment)
