"""The learner of engines whose actors run apart from it: takes unrolls, publishes parameters."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from synthetic_returns.config import Config
from synthetic_returns.credit.episodic import EpisodicState
from synthetic_returns.engines.credit import EpisodicCredit, has_episodic_credit
from synthetic_returns.learner import Agent, Learner
from synthetic_returns.networks import AgentNetwork
from synthetic_returns.statistics import EpisodeStatistics
from synthetic_returns.types import TimeStep, Trajectory, first_step

__all__ = ["Policy", "Unroll", "UnrollLearner"]


@dataclasses.dataclass(frozen=True)
class Policy:
    """What actors act with: a network, and how many updates made it."""

    network: AgentNetwork
    version: int


@dataclasses.dataclass(frozen=True)
class Unroll:
    """What an actor sends: a trajectory, whose it is and what policy it began with.

    Attributes:
      stream: index of the actor; its unrolls follow each other, one for each update.
      version: of the policy that acted.
      trajectory: ``[T + 1, B]``.
    """

    stream: int
    version: int
    trajectory: Trajectory


class UnrollLearner:
    """Everything of one seed but its environments.

    Attributes:
      config: the settings.
      updates: how many there were.
    """

    def __init__(self, config: Config, seed: int, streams: int):
        """Draws all parameters.

        Args:
          config: the settings.
          seed: of the run.
          streams: how many actors send unrolls. Each has an episodic memory, running episodes and
            statistics of its own, because these follow its environments.
        """
        self.config = config
        learner_key, self.actor_key = jax.random.split(jax.random.key(seed))
        learner = Learner(config)
        self._state = learner.init(learner_key)
        self._memories = [
            jax.tree.map(jnp.copy, self._state.memory) if stream else self._state.memory
            for stream in range(streams)
        ]
        self._credit = (
            EpisodicCredit(config, seed, streams) if has_episodic_credit(config) else None
        )
        self._statistics = [_nothing_gathered(config) for _ in range(streams)]
        self._metrics: dict[str, Float[Array, ""]] = {}
        self._lags: list[int] = []
        self._update = eqx.filter_jit(learner.update, donate="all")
        self.updates = 0

    def policy(self) -> Policy:
        """A copy of the newest policy: updates are made in place, while actors go on acting."""
        return Policy(_copy(self._state.agent.network), self.updates)

    def update(self, unroll: Unroll) -> None:
        """One optimisation step; learns from the episodes that ended, if they give the credit."""
        stream, trajectory = unroll.stream, unroll.trajectory
        self._lags.append(self.updates - unroll.version)
        self._statistics[stream] = _gather(self._statistics[stream], trajectory.timestep)
        c_t = self._credit.follow(trajectory, stream) if self._credit else None
        state = eqx.tree_at(
            lambda s: s.memory, self._state, self._memories[stream], is_leaf=lambda x: x is None
        )
        self._state, self._metrics = self._update(state, trajectory, c_t)
        self._memories[stream] = self._state.memory
        self.updates += 1

    @property
    def agent(self) -> Agent:
        """The agent as it is now."""
        return self._state.agent

    @property
    def credit(self) -> EpisodicState | None:
        """The episodic model, if that is where credit comes from."""
        return self._credit.learner.state if self._credit else None

    def report(self) -> dict[str, float]:
        """Means over the episodes since the last report, the last losses, and the lag."""
        report = jax.tree.map(lambda *x: jnp.concatenate(x), *self._statistics).means()
        self._statistics = [statistics.reported() for statistics in self._statistics]
        report |= {name: float(x) for name, x in self._metrics.items()}
        if self._credit:
            credit = self._credit.learner.report()
            report |= {f"sa/{name}": float(x) for name, x in credit.items()}
        if self._lags:
            report["policy/lag"] = sum(self._lags) / len(self._lags)
            report["policy/lag_max"] = float(max(self._lags))
        self._lags = []
        return report

    def snapshot(self, *, running: bool) -> dict[str, Any]:
        """All that is needed to go on later.

        Args:
          running: with what is known about the running episodes, if these can go on.
        """
        snapshot: dict[str, Any] = {"learner": self._state, "memories": self._memories[1:]}
        if self._credit:
            snapshot["credit"] = self._credit.snapshot(running=running)
        if running:
            snapshot["statistics"] = self._statistics
        return snapshot

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Goes on from a snapshot."""
        self._state = snapshot["learner"]
        self._memories = [self._state.memory, *snapshot["memories"]]
        self.updates = int(self._state.updates)
        if self._credit:
            self._credit.restore(snapshot["credit"])
        self._statistics = snapshot.get("statistics", self._statistics)


@eqx.filter_jit
def _gather(statistics: EpisodeStatistics, timestep: TimeStep) -> EpisodeStatistics:
    """Takes in all steps of an unroll but the first, which was the last of the one before."""

    def add(statistics: EpisodeStatistics, timestep: TimeStep):
        return statistics.add(timestep), None

    light = eqx.tree_at(lambda t: t.observation, timestep, timestep.reward)
    return jax.lax.scan(add, statistics, jax.tree.map(lambda x: x[1:], light))[0]


def _nothing_gathered(config: Config) -> EpisodeStatistics:
    step = first_step(None, config.task.event_names)
    return EpisodeStatistics.zero(
        jax.tree.map(lambda x: jnp.broadcast_to(x, (config.num_envs,)), step)
    )


_copy = eqx.filter_jit(
    lambda tree: jax.tree.map(lambda x: jnp.copy(x) if eqx.is_array(x) else x, tree)
)
