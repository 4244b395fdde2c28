"""A model of the cluster engine: what many actors would do, from what a few were measured to cost.

Actors play, results travel through the learner's network one after another, and the learner takes
batches of them; the rules are those of ``engines.crew``. Whatever computes shares the
cores evenly, if there are fewer cores than processes.
"""

import collections
import dataclasses
import math

import numpy as np

__all__ = ["ClusterCosts", "ClusterForecast", "forecast"]


@dataclasses.dataclass(frozen=True)
class ClusterCosts:
    """What was measured, for one unroll or update on a core of its own.

    Attributes:
      play_s: seconds in which an actor plays an unroll.
      receive_s: seconds that the learner spends on an unroll beside the update.
      update_s: seconds of an update.
      unroll_bytes: what an unroll weighs.
      weights_bytes: what the policy's parameters weigh.
      unroll_steps: environment steps of an unroll.
    """

    play_s: float
    receive_s: float
    update_s: float
    unroll_bytes: float
    weights_bytes: float
    unroll_steps: int


@dataclasses.dataclass(frozen=True)
class ClusterForecast:
    """What the model says.

    Attributes:
      steps_per_s: environment steps learned from.
      learner_busy: share of the time in which the learner learns.
      lag: mean number of updates between the beginning of an unroll and learning from it.
      bytes_in_per_s: unrolls on their way to the learner.
      bytes_out_per_s: parameters on their way to the nodes.
    """

    steps_per_s: float
    learner_busy: float
    lag: float
    bytes_in_per_s: float
    bytes_out_per_s: float


def forecast(
    costs: ClusterCosts,
    actors: int,
    *,
    unrolls_per_update: int = 1,
    max_lag: int = 20,
    cores: float = math.inf,
    bytes_per_s: float = math.inf,
    actors_per_node: int = 1,
    jitter: float = 0.2,
    updates: int = 300,
    seed: int = 0,
) -> ClusterForecast:
    """Simulates many updates.

    Args:
      costs: what everything costs.
      actors: how many.
      unrolls_per_update: of different actors.
      max_lag: no more unrolls are under way than this many updates take.
      cores: that all processes share; unlimited if every process has its own.
      bytes_per_s: of the learner's network, each way.
      actors_per_node: that share one copy of the parameters.
      jitter: standard deviation of the logarithm of how long an unroll takes.
      updates: how many to play through, after a third as many that do not count.
      seed: of the jitter.
    """
    rng = np.random.default_rng(seed)
    transfer_s = costs.unroll_bytes / bytes_per_s
    learn_s = unrolls_per_update * costs.receive_s + costs.update_s
    work = np.full(actors, np.inf)  # left to play; infinite for actors that do not
    version_of = np.zeros(actors, int)
    travelling: collections.deque[tuple[int, int]] = collections.deque()
    arrived: collections.deque[tuple[int, int]] = collections.deque()
    idle = collections.deque(range(actors))
    most = max_lag * unrolls_per_update
    transfer_left = learn_left = math.inf
    version, now, warm = 0, 0.0, updates // 3
    lags: list[int] = []
    batch_lags: list[int] = []
    busy = began = 0.0

    def send_out() -> None:
        while idle and len(arrived) + len(travelling) + np.isfinite(work).sum() < most:
            stream = idle.popleft()
            work[stream] = costs.play_s * math.exp(jitter * rng.normal())
            version_of[stream] = version

    send_out()
    while version < warm + updates:
        if math.isinf(learn_left) and len(arrived) >= unrolls_per_update:
            batch = [arrived.popleft() for _ in range(unrolls_per_update)]
            batch_lags = [version - acted for _, acted in batch]
            learn_left = learn_s
            idle.extend(stream for stream, _ in batch)
            send_out()
        if math.isinf(transfer_left) and travelling:
            transfer_left = transfer_s
        computing = int(np.isfinite(work).sum()) + math.isfinite(learn_left)
        rate = min(1.0, cores / computing) if computing else 1.0
        passed = min(float(work.min()) / rate, learn_left / rate, transfer_left)
        now += passed
        busy += passed if math.isfinite(learn_left) and version >= warm else 0.0
        work -= passed * rate
        learn_left -= passed * rate
        transfer_left -= passed
        for stream in np.flatnonzero(work <= 1e-12):
            work[stream] = np.inf
            travelling.append((int(stream), int(version_of[stream])))
        if transfer_left <= 1e-12:
            transfer_left = math.inf
            arrived.append(travelling.popleft())
        if learn_left <= 1e-12:
            learn_left = math.inf
            version += 1
            if version == warm:
                began = now
            elif version > warm:
                lags += batch_lags
    elapsed = now - began
    unrolls = updates * unrolls_per_update / elapsed
    nodes = -(-actors // actors_per_node)
    return ClusterForecast(
        steps_per_s=unrolls * costs.unroll_steps,
        learner_busy=busy / elapsed,
        lag=float(np.mean(lags)),
        bytes_in_per_s=unrolls * costs.unroll_bytes,
        # A node fetches each version at most once, and no more often than its actors begin.
        bytes_out_per_s=costs.weights_bytes * min(unrolls, nodes * updates / elapsed),
    )
