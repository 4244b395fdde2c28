"""The cluster engine: actors in processes of their own, on one machine or many; one learner.

It differs from the local engine in its actors (see ``crew``): an actor or a whole node may die, be
slow or send invalid data, and training continues with the others. An update combines the unrolls of
different actors until they have ``num_envs`` environments. The learner sees every step, so it keeps
the episodic memory and the running episodes itself, and neither is ever sent.
"""

import time
from collections.abc import Sequence
from typing import Any

from synthetic_returns.config import Config
from synthetic_returns.engines.cluster.actor_process import Weights, to_weights
from synthetic_returns.engines.cluster.crew import Crew
from synthetic_returns.engines.settings import ClusterSettings
from synthetic_returns.engines.unroll_engine import UnrollEngine
from synthetic_returns.engines.unroll_learner import Unroll
from synthetic_returns.utils.several import Several

__all__ = ["ClusterEngine"]


class ClusterEngine(UnrollEngine):
    """Trains one agent with actors on Ray.

    A restored engine starts new episodes, from other seeds than before.
    """

    def __init__(self, config: Config, seeds: Sequence[int]):
        """Draws all parameters; the actors are started by the first step."""
        assert isinstance(config.engine, ClusterSettings)
        super().__init__(config, seeds, config.engine.actors, config.engine.envs_per_actor)
        self._settings, self._seed = config.engine, seeds[0]
        self._crew: Crew | None = None
        self._stale = 0
        self._waited = 0.0
        self._since = time.monotonic()

    def step(self, at_most: int = 1) -> int:
        """One update from the next unrolls."""
        del at_most
        if self._crew is None:
            self._crew = Crew(self.config, self._seed, self._learner.updates, self._weights)
        batch = self._next_batch(self._crew)
        # They play while the learner learns.
        self._crew.taken(batch)
        self._crew.send_out(self._learner.updates)
        self._learner.update(*batch)
        return 1

    def report(self) -> list[dict[str, float]]:
        """Means over the episodes since the last report, the last losses, the lag and faults."""
        report = self._learner.report()
        if self._crew is not None:
            now = time.monotonic()
            report |= self._crew.report()
            report["actors/stale"] = float(self._stale)
            # Played and used by credit, but not in ``env_steps``, which counts steps of updates.
            unroll_steps = self._settings.envs_per_actor * self._settings.unroll_length
            report["actors/stale_steps"] = float(self._stale * unroll_steps)
            report["learner/busy"] = 1 - self._waited / max(now - self._since, 1e-9)
            self._waited, self._since = 0.0, now
        return [report]

    def snapshot(self, index: int) -> dict[str, Any]:
        """All that is needed to go on later."""
        del index
        # Checkpoints from before it was saved hold no such number.
        return self._learner.snapshot(running=False) | {"stale": Several([self._stale], int)}

    def restore(self, snapshots: Sequence[dict[str, Any]]) -> None:
        """Restores a snapshot."""
        self.close()
        self._learner.restore(snapshots[0])
        self._stale = sum(snapshots[0]["stale"].items)

    def close(self) -> None:
        """Ends all actors."""
        if self._crew is not None:
            self._crew.close()
            self._crew = None

    def _next_batch(self, crew: Crew) -> list[Unroll]:
        """Unrolls of different actors, none of them too old."""
        learner, batch = self._learner, []
        while len(batch) < self._settings.unrolls_per_update:
            began = time.monotonic()
            unroll = crew.next(learner.updates)
            self._waited += time.monotonic() - began
            if learner.updates - unroll.version > self._settings.max_lag:
                # Too old for the policy, and still part of an episode.
                learner.observe(unroll)
                crew.taken([unroll])
                self._stale += 1
            else:
                batch.append(unroll)
        return batch

    def _weights(self) -> Weights:
        return to_weights(self._learner.agent.network, self._learner.updates)
