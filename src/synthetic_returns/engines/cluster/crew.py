"""The actors of a cluster, as the learner sees them: on Ray, each in a process of its own.

Every actor has one unroll under way: it plays it, or it waits until the learner has taken it. So
the number under way is bounded, and with it how old the policy is that the learner learns from.
"""

import collections
import contextlib
import dataclasses
import importlib.util
import logging
import os
import signal
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from synthetic_returns.config import Config
from synthetic_returns.engines.cluster.actor_process import ActorProcess, Weights
from synthetic_returns.engines.cluster.unroll_checks import find_fault
from synthetic_returns.engines.engine import ActorFailed
from synthetic_returns.engines.settings import ClusterSettings
from synthetic_returns.engines.shapes import expected_trajectory
from synthetic_returns.engines.unroll_learner import Unroll

__all__ = ["Crew"]

POLL_SECONDS = 1.0
SILENCE_SECONDS = 600.0  # without a message from any actor
PATIENCE = 5  # errors of one actor without a good unroll in between
REST_SECONDS = 1.0  # after a failure; twice as long after each one more
LONGEST_REST_SECONDS = 10.0

# Actors have one core and no accelerator; both have to be said before JAX is loaded.
ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}
SETTINGS = {
    "RAY_worker_niceness": "0",  # not Ray's 15: actors are not background work
    "RAY_USAGE_STATS_ENABLED": "0",  # no usage statistics are sent
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the future default, without its warning
}

_log = logging.getLogger(__name__)


@dataclasses.dataclass
class _Member:
    """One actor.

    Attributes:
      handle: of the Ray actor, which Ray starts again if its process or node dies.
      life: how often its environments were started, over all sessions of the run.
      failures: since its last good unroll, its errors among them.
      errors: since its last good unroll, without failures to reach it.
      rests_until: when it is worth another try.
    """

    handle: Any
    life: int
    failures: int = 0
    errors: int = 0
    rests_until: float = 0.0


@dataclasses.dataclass(frozen=True)
class _Order:
    """An unroll in play: whose, with which policy, in which life."""

    stream: int
    version: int
    life: int


class Crew:
    """All actors, and the unrolls that have arrived from them."""

    def __init__(self, config: Config, seed: int, life: int, weights: Callable[[], Weights]):
        """Starts the actors, in a new cluster on this machine or in one that exists.

        Args:
          config: the settings.
          seed: of the run.
          life: different for every session of a run, so that its episodes are others.
          weights: gives the newest.
        """
        assert isinstance(config.engine, ClusterSettings)
        self._config, self._weights = config, weights
        self._settings = settings = config.engine
        self._ray, self._ours = _connect(settings)
        self._expected = expected_trajectory(config, settings.envs_per_actor)
        remote = self._ray.remote(
            num_cpus=1,
            max_restarts=-1,
            scheduling_strategy="SPREAD",
            runtime_env={"env_vars": ENVIRONMENT},
        )(ActorProcess)
        # A cluster frees the name of an actor some time after its end, and other runs may share it.
        crew = uuid.uuid4().hex[:8]
        self._members = [
            _Member(
                remote.options(name=f"actor-{stream}-{crew}").remote(
                    config, settings.envs_per_actor, seed, stream
                ),
                life,
            )
            for stream in range(settings.actors)
        ]
        self._published: tuple[int, Any] | None = None
        self._idle = collections.deque(range(settings.actors))
        self._playing: dict[Any, _Order] = {}
        self._arrived: collections.deque[Unroll] = collections.deque()
        self._delivered: set[int] = set()
        self._counts = collections.Counter(restarted=0, poisoned=0, unrolls=0, bytes=0)
        self._last_trouble = "no actor has failed"

    def next(self, version: int) -> Unroll:
        """Waits for an unroll; all are of different actors until some are ``taken``.

        Args:
          version: of the newest policy.

        Raises:
          ActorFailed: an actor fails whenever it is tried, or all are silent.
        """
        began = time.monotonic()
        while time.monotonic() < began + SILENCE_SECONDS:
            self.send_out(version)
            if self._arrived:
                return self._arrived.popleft()
            self._receive()
        raise ActorFailed(
            f"no actor has sent anything for {SILENCE_SECONDS:.0f} s ({self._last_trouble}); see "
            f"whether the cluster has a free CPU for each of the {self._settings.actors} actors "
            "(ray status)"
        )

    def taken(self, unrolls: Iterable[Unroll]) -> None:
        """Lets the actors of these unrolls play on."""
        self._idle.extend(unroll.stream for unroll in unrolls)

    def report(self) -> dict[str, float]:
        """What happened since the last report."""
        settings = self._settings
        steps = self._counts["unrolls"] * settings.envs_per_actor * settings.unroll_length
        report: dict[str, float] = {
            "actors/delivering": len(self._delivered),
            "actors/restarted": self._counts["restarted"],
            "actors/poisoned": self._counts["poisoned"],
        }
        if steps:
            report["actors/bytes_per_step"] = self._counts["bytes"] / steps
        self._delivered.clear()
        self._counts.update(unrolls=-self._counts["unrolls"], bytes=-self._counts["bytes"])
        return {name: float(x) for name, x in report.items()}

    def close(self) -> None:
        """Ends all actors, and the cluster if it was started here."""
        for member in self._members:
            self._ray.kill(member.handle)
        self._members = []
        if self._ours:
            self._ray.shutdown()

    def send_out(self, version: int) -> None:
        """Lets idle actors play, as long as what they play will not be too old."""
        most = self._settings.max_lag * self._settings.unrolls_per_update
        now = time.monotonic()
        ready = [stream for stream in self._idle if self._members[stream].rests_until <= now]
        room = max(0, most - len(self._playing) - len(self._arrived))
        for stream in ready[:room]:
            self._idle.remove(stream)
            member = self._members[stream]
            ref = member.handle.unroll.remote(self._publish(version), member.life)
            self._playing[ref] = _Order(stream, version, member.life)

    def _publish(self, version: int) -> Any:
        """Puts the newest weights where all actors find them, once for each version."""
        if self._published is None or self._published[0] != version:
            self._published = (version, self._ray.put(self._weights()))
        return self._published[1]

    def _receive(self) -> None:
        """Waits a moment for actors, and collects the unrolls that have arrived, oldest first.

        Ray names an arbitrary one of them; without this order, the others would grow old.
        """
        refs = list(self._playing)
        if not refs:  # all rest
            time.sleep(POLL_SECONDS)
            return
        ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0)
        if not ready:
            ready, _ = self._ray.wait(refs, timeout=POLL_SECONDS)
        for ref in sorted(ready, key=refs.index):
            order = self._playing.pop(ref)
            try:
                trajectory = self._ray.get(ref)
            except self._ray.exceptions.RayError as error:
                # An actor that cannot be reached is restarting, or waits for its node to restart.
                away = isinstance(error, self._ray.exceptions.ActorUnavailableError)
                self._counts["restarted"] += not self._members[order.stream].failures
                self._start_again(order.stream, _last_line(error), away=away)
                continue
            if fault := find_fault(trajectory, self._expected, self._config.task.num_actions):
                self._counts["poisoned"] += 1
                self._start_again(order.stream, f"its unroll was dropped: {fault}")
                continue
            member = self._members[order.stream]
            member.failures = member.errors = 0
            self._delivered.add(order.stream)
            size = sum(leaf.nbytes for leaf in jax.tree.leaves(trajectory))
            self._counts.update(unrolls=1, bytes=size)
            trajectory = jax.tree.map(jnp.asarray, trajectory)
            self._arrived.append(Unroll(order.stream, order.version, trajectory, order.life))

    def _start_again(self, stream: int, why: str, *, away: bool = False) -> None:
        """Nothing that the actor plays from here on follows what it played before."""
        member = self._members[stream]
        member.life += 1
        rest = min(REST_SECONDS * 2.0 ** min(member.failures, 30), LONGEST_REST_SECONDS)
        member.rests_until = time.monotonic() + rest
        member.failures += 1
        member.errors += not away
        self._idle.append(stream)
        self._last_trouble = f"actor {stream}: {why}"
        _log.warning("actor %d starts again in %.0f s: %s", stream, rest, why)
        if member.errors > PATIENCE:
            raise ActorFailed(f"actor {stream} failed {member.errors} times in a row: {why}")


def _connect(settings: ClusterSettings) -> tuple[Any, bool]:
    """Ray, connected; and whether the cluster is ours to shut down."""
    if importlib.util.find_spec("ray") is None:
        raise ValueError(
            "the engine 'cluster' needs the package ray, which is not installed: "
            "pip install 'synthetic-returns[cluster]', or use the engine 'local'."
        )
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    import ray

    if ray.is_initialized():
        return ray, False
    if settings.address is not None:
        where: dict[str, Any] = {"address": settings.address}
    else:
        # As many CPUs as actors, whatever the machine has: they take turns.
        where = {"num_cpus": settings.actors, "include_dashboard": False}
        where["_node_ip_address"] = "127.0.0.1"
    with warnings.catch_warnings(), _own_signals():
        # JAX warns about forks because it has threads; Ray's forks become other programs at once.
        warnings.filterwarnings("ignore", message=r"os\.fork", category=RuntimeWarning)
        ray.init(log_to_driver=False, **where)
    return ray, True


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keeps what happens on Ctrl-C and SIGTERM: Ray would end the process, with nothing saved."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            if handler is not None:  # else it was never Python's
                signal.signal(number, handler)


def _last_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{type(error).__name__}: {lines[-1].strip()}"
