"""The local engine: environments on the host, actors in threads, one learner.

An actor plays unroll after unroll with the newest policy it finds and puts each into a bounded
queue; the learner takes one for each update. By then the actor's policy is a few updates old:
V-trace corrects for it, and ``policy/lag`` says how many.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax

from synthetic_returns.acting.host_actor import HostActor
from synthetic_returns.config import Config
from synthetic_returns.engines.engine import ActorFailed
from synthetic_returns.engines.settings import LocalSettings
from synthetic_returns.engines.unroll_engine import UnrollEngine
from synthetic_returns.engines.unroll_learner import Policy, Unroll
from synthetic_returns.nn.networks import Network
from synthetic_returns.utils.process_memory import resident_mb

__all__ = ["LocalEngine"]

POLL_SECONDS = 0.2  # how often a waiting thread checks whether it should stop


class LocalEngine(UnrollEngine):
    """Trains one agent in environments that are stepped from the host.

    With ``actors`` 0, one actor plays in the learner's thread, in turns with it: repeatable,
    and on a task written in JAX the same as the fused engine without staggering. Otherwise each
    actor thread has ``num_envs`` environments of its own.

    Environments on the host can rarely be saved. Unless they can and there are no threads, a
    restored engine starts new episodes, from other seeds than before.
    """

    def __init__(self, config: Config, seeds: Sequence[int]):
        """Draws all parameters; the environments are started by the first step."""
        assert isinstance(config.engine, LocalSettings)
        super().__init__(config, seeds, streams=max(1, config.engine.actors))
        self._settings = config.engine
        self._actors: list[HostActor] = []
        self._threads: _ActorThreads | None = None

    def step(self, at_most: int = 1) -> int:
        """One update from the next unroll."""
        del at_most
        self._start()
        if self._threads is not None:
            self._learner.update(self._threads.next())
            self._threads.publish(self._learner.policy())
        else:
            policy = self._learner.policy()
            acting = self._learner.behaviour(policy, 0)
            trajectory = self._actors[0].unroll(acting, self._settings.unroll_length)
            self._learner.update(Unroll(0, policy.version, trajectory))
        return 1

    def report(self) -> list[dict[str, float]]:
        """Means over the episodes since the last report, the last losses, the lag, and the memory.

        Host environments, queues and episodes live outside of JAX, where a leak would not show.
        """
        return [self._learner.report() | {"memory_mb": resident_mb()}]

    def snapshot(self, index: int) -> dict[str, Any]:
        """All that is needed to go on later."""
        del index
        if self._settings.actors:
            return self._learner.snapshot(running=False)
        self._start()
        actor = self._actors[0].snapshot()
        return self._learner.snapshot(running=actor is not None) | {"actor": actor}

    def restore(self, snapshots: Sequence[dict[str, Any]]) -> None:
        """Restores a snapshot."""
        self.close()
        self._learner.restore(snapshots[0])
        if (actor := snapshots[0].get("actor")) is not None:
            self._start()
            self._actors[0].restore(actor)

    def close(self) -> None:
        """Ends the threads and closes the environments."""
        if self._threads is not None:
            self._threads.close()
            self._threads = None
        for actor in self._actors:
            actor.close()
        self._actors = []

    def _start(self) -> None:
        """Starts the environments, from other seeds each time that a run is started or resumed."""
        if self._actors:
            return
        key = self._learner.actor_key
        if self._learner.updates:
            key = jax.random.fold_in(key, self._learner.updates)
        keys = [key] if self._settings.actors <= 1 else jax.random.split(key, self._settings.actors)
        policy = self._learner.policy()
        self._actors = [
            HostActor(self.config.task, policy.network, self._settings.num_envs, k) for k in keys
        ]
        if self._settings.actors:
            self._threads = _ActorThreads(
                self._actors, policy, self._learner.behaviour, self._settings
            )


class _ActorThreads:
    """Actors that play on their own, and the queue of what they played."""

    def __init__(
        self,
        actors: Sequence[HostActor],
        policy: Policy,
        behaviour: Callable[[Policy, int], Network],
        settings: LocalSettings,
    ):
        self._policy, self._behaviour = policy, behaviour
        self._length = settings.unroll_length
        self._queue: queue.Queue[Unroll] = queue.Queue(maxsize=settings.queue_size)
        self._failures: dict[int, BaseException] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._play, args=(stream, actor), name=f"actor-{stream}", daemon=True
            )
            for stream, actor in enumerate(actors)
        ]
        for thread in self._threads:
            thread.start()

    def publish(self, policy: Policy) -> None:
        """Gives the actors a newer policy, from their next unroll on."""
        self._policy = policy

    def next(self) -> Unroll:
        """Waits for the next unroll, as long as every actor is alive."""
        while True:
            self._check_alive()
            try:
                return self._queue.get(timeout=POLL_SECONDS)
            except queue.Empty:
                continue

    def close(self) -> None:
        """Ends all threads."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _play(self, stream: int, actor: HostActor) -> None:
        try:
            while not self._stop.is_set():
                policy = self._policy
                trajectory = actor.unroll(self._behaviour(policy, stream), self._length)
                self._put(Unroll(stream, policy.version, trajectory))
        except BaseException as error:  # whatever it is, the learner has to know
            self._failures[stream] = error

    def _put(self, unroll: Unroll) -> None:
        while not self._stop.is_set():
            try:
                self._queue.put(unroll, timeout=POLL_SECONDS)
                return
            except queue.Full:
                continue

    def _check_alive(self) -> None:
        for stream, thread in enumerate(self._threads):
            error = self._failures.get(stream)
            if error is not None or not thread.is_alive():
                what = f"{type(error).__name__}: {error}" if error else "its thread is gone"
                raise ActorFailed(f"actor {stream} failed, {what}") from error
