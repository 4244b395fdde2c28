"""The driver of a credit method: from streams of steps to the credit of every transition.

It follows running episodes, stores finished ones, trains the method on them and asks it for credit.
All engines and all wrappers use this driver.
"""

import collections
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Float

from synthetic_returns.credit.data.episode import Episode, Segment
from synthetic_returns.credit.data.queue import EpisodeQueue
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
    """Runs a credit method: records episodes, trains on them, and returns the credit of steps.

    Attributes:
      method: the method.
      state: what it has learned.
      buffer: replay buffer of finished episodes.
      waiting: finished episodes that are not yet learned from.
      view: what the method sees of them.
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
          spec: sizes of the episodes, as the view shows them.
          view: what the method sees of the episodes.
          max_episode_steps: length of the longest episode, before the view's stride.
          num_envs: environments of each stream.
          streams: number of batches of environments that are followed independently.
          memory_mb: memory limit of the buffer. If the episodes that the method asks for do not
            fit, the buffer keeps fewer, and it grows for episodes that are longer than expected.
            Without a limit, such episodes are an error.
          learn_every: collect this many finished episodes, then learn from them; never from more at
            once. None learns from every episode as soon as it has ended.
          overlap: train in a separate thread. Credit is then computed with the model as it was
            before the newest episodes, so that acting does not wait for training. The lag does not
            depend on how long updates take, so runs stay exactly repeatable.
          recent: how many finished episodes to keep for inspection.
          segment_length: number of transitions in a segment; like ``example``, needed only to read
            a snapshot from a file that holds items which wait for the end of episodes.
          example: makes an item like those that are passed to ``follow``.
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
        self.waiting = EpisodeQueue(spec, self._replay.slots)
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
        """Learns from the episodes that end in a segment, and returns credit.

        Args:
          segment: the new transitions, as the view shows them; the last state is the first one of
            the next segment.
          item: anything that belongs to the segment, such as the unroll; returned with its credit.
          stream: number of the stream that the segment belongs to.

        Returns:
          Items with their credit. Most methods return this segment's item at once. With a method
          that needs complete episodes, an item waits until all episodes in it have ended, so the
          items are earlier ones.
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
        """Like ``follow``, for methods that pay at once: returns the rewards of the segment."""
        self.observe(segment)
        (reward, _), self._carries[0] = self._assigned(self._carries[0], segment)
        return reward

    def observe(self, segment: Segment, stream: int = 0) -> list[Ended]:
        """Like ``follow``, without credit: returns the episodes that ended in the segment."""
        if self.frozen and not self._in_hindsight:
            return []
        ended = list(self.recorders[stream].record(_on_host(segment)))
        if not self.frozen:
            episodes = [one.episode for one in ended]
            self.waiting.add(episodes)
            self.recent.extend(episodes)
            enough = len(self.waiting) if self._learn_every is None else self._learn_every
            if len(self.waiting) >= enough:
                self.learn(self.waiting.take(enough))
        return ended

    def pay_again(self, segments: Iterable[Segment]) -> Iterator[Assignment]:
        """The current credit of consecutive earlier segments; the method does not learn from them.

        With a method that needs complete episodes, segments at the end whose episodes are still
        running are left out.
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
        """The current credit of single transitions that do not end their episodes, ``[batch]``.

        Args:
          observation: the source states, as the view shows them.
          arrived: the destination states.
          action: the actions, if known.
          time: the time step of each transition in its episode.
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
        reward = self._functions.assign_at(self._known, time, vars(segment))
        return np.asarray(reward)[0, :number]

    def forget(self, stream: int) -> list[Item]:
        """Drops the running episodes of a stream; returns the items that waited for their end."""
        self.recorders[stream].forget()
        self._carries[stream] = self._start(self._num_envs)
        return self.give_up(stream)

    def give_up(self, stream: int) -> list[Item]:
        """Drops the items that wait for credit in a stream, and returns them."""
        return self._held[stream].forget()

    def freeze(self) -> None:
        """Switches recording and learning off, for evaluation."""
        self.frozen = True
        for recorder in self.recorders:
            recorder.forget()

    def unfreeze(self) -> None:
        """Resumes learning, with the episodes that start from now on."""
        self.frozen = not self._learns

    def report(self) -> dict[str, float]:
        """Diagnostics of the method, and the memory of finished, running and waiting episodes."""
        report = super().report()
        if self._learns or self._in_hindsight:
            kept = (*self.recorders, *self._held, self.waiting)
            report["running_mb"] = sum(x.bytes for x in kept) / 1e6
        return report

    def snapshot(self, *, running: bool = True) -> dict[str, Any]:
        """Everything that changes during learning, as a pytree.

        All shapes are fixed, but as many items and episodes wait as there happen to be.

        Args:
          running: include the running episodes of a single stream and the items that wait for
            their end. They are useful only if the environments are saved, too.
        """
        snapshot = super().snapshot()
        if self._learn_every is not None:
            snapshot["waiting"] = self.waiting.snapshot()
        if running:
            (recorder,), (snapshot["carry"],) = self.recorders, self._carries
            if self._learns or self._in_hindsight:
                snapshot["running"] = recorder.snapshot()
            if self._in_hindsight:
                (held,) = self._held
                snapshot["held"] = held.snapshot(self._segment_length, self._example)
        return snapshot

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continues from a snapshot."""
        super().restore(snapshot)
        if "running" in snapshot:
            self.recorders[0].restore(snapshot["running"])
        if "carry" in snapshot:
            self._carries[0] = snapshot["carry"]
        if "held" in snapshot:
            self._held[0].restore(snapshot["held"].items)
        self.waiting.restore(snapshot["waiting"].items if "waiting" in snapshot else [])

    def _settle(self, held: Hindsight[Any], ended: Iterable[Ended]) -> None:
        """Assigns credit to the episodes that ended in the newest segment."""
        for one in ended:
            held.settle(one, self._credit_of(one.episode), self.view)


def _on_host(segment: Segment) -> Segment:
    """The segment in numpy's arrays."""
    if isinstance(segment.reward, np.ndarray):
        return segment
    return jax.tree.map(np.asarray, segment)
