"""The learner of engines whose actors run apart from it: takes unrolls, publishes parameters."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from synthetic_returns.acting.statistics import EpisodeStatistics
from synthetic_returns.agents.impala.learner import Agent, Learner, LearnerState
from synthetic_returns.config import Config
from synthetic_returns.credit.episodic.state import EpisodicState
from synthetic_returns.credit.paper.memory import EpisodicMemory, remember
from synthetic_returns.engines.credit import EpisodicCredit, has_episodic_credit
from synthetic_returns.engines.layouts import spread_update, trajectory_layout
from synthetic_returns.envs.base import select_rows
from synthetic_returns.nn.networks import AgentNetwork
from synthetic_returns.types import TimeStep, Trajectory, first_step, side_by_side
from synthetic_returns.utils.devices import AXIS, device_mesh

__all__ = ["Policy", "Unroll", "UnrollLearner"]


@dataclasses.dataclass(frozen=True)
class Policy:
    """What actors act with: a network, and how many updates made it."""

    network: AgentNetwork
    version: int


@dataclasses.dataclass(frozen=True, eq=False)
class Unroll:
    """What an actor sends: a trajectory, whose it is and what policy it began with.

    Attributes:
      stream: index of the actor; its unrolls follow each other, one for each update.
      version: of the policy that acted.
      trajectory: ``[T + 1, B]``.
      life: which one of the actor's; in another one, all its environments started anew.
    """

    stream: int
    version: int
    trajectory: Trajectory
    life: int = 0


class UnrollLearner:
    """Everything of one seed but its environments.

    Attributes:
      config: the settings.
      updates: how many there were.
    """

    def __init__(self, config: Config, seed: int, streams: int, stream_envs: int | None = None):
        """Draws all parameters.

        Args:
          config: the settings.
          seed: of the run.
          streams: how many actors send unrolls. Each has an episodic memory, running episodes and
            statistics of its own, because these follow its environments.
          stream_envs: environments of each; the whole batch of an update unless given.
        """
        self.config, settings = config, config.engine
        envs = stream_envs or settings.num_envs
        self._mesh = device_mesh(settings.devices, settings.num_envs // settings.accumulate)
        learner_key, self.actor_key = jax.random.split(jax.random.key(seed))
        self._learner = learner = Learner(config, axis=AXIS if self._mesh else None)
        self._state = learner.init(learner_key)
        self._memories = [_rows(self._state.memory, envs) for _ in range(streams)]
        self._credit = (
            EpisodicCredit(config, seed, streams, envs) if has_episodic_credit(config) else None
        )
        self._statistics = [_nothing_gathered(config, envs) for _ in range(streams)]
        self._seen = [jnp.zeros(envs, bool) for _ in range(streams)]
        self._lives = [0] * streams
        self._metrics: dict[str, Float[Array, ""]] = {}
        self._lags: list[int] = []
        self._update: Callable[..., Any] | None = None
        self.updates = 0

    def policy(self) -> Policy:
        """A copy of the newest policy: updates are made in place, while actors go on acting."""
        return Policy(_copy(self._state.agent.network), self.updates)

    def update(self, *unrolls: Unroll) -> None:
        """One optimisation step; learns from the episodes that ended, if they give the credit.

        Args:
          *unrolls: of different streams, side by side the batch of an update.
        """
        self._lags += [self.updates - unroll.version for unroll in unrolls]
        c_t = [c for unroll in unrolls if (c := self._follow(unroll)) is not None]
        memories = [self._memories[unroll.stream] for unroll in unrolls]
        state = _with_memory(self._state, jax.tree.map(lambda *x: jnp.concatenate(x), *memories))
        trajectory = side_by_side([unroll.trajectory for unroll in unrolls])
        if self._update is None:
            self._update = self._compiled_update(state, trajectory)
        self._state, self._metrics = self._update(
            state,
            trajectory,
            jnp.concatenate(c_t, axis=1) if c_t else None,
        )
        for row, unroll in enumerate(unrolls):
            self._memories[unroll.stream] = jax.tree.map(
                lambda x, row=row: jnp.split(x, len(unrolls))[row], self._state.memory
            )
        self.updates += 1

    def observe(self, unroll: Unroll) -> None:
        """Follows the episodes of an unroll that nothing else is learned from."""
        self._follow(unroll)
        if (memory := self._memories[unroll.stream]) is not None:
            self._memories[unroll.stream] = _remember(
                self._state.agent.network, memory, unroll.trajectory.timestep
            )

    def _compiled_update(self, state: LearnerState, trajectory: Trajectory) -> Callable[..., Any]:
        update = self._learner.update
        if self._mesh:
            update = spread_update(update, self._mesh, state, trajectory_layout(trajectory))
        return eqx.filter_jit(update, donate="all")

    def _follow(self, unroll: Unroll) -> Float[Array, "time batch"] | None:
        """Takes note of what ended in an unroll; gives its synthetic returns, if it does."""
        stream, trajectory = unroll.stream, unroll.trajectory
        if unroll.life != self._lives[stream]:
            self._lives[stream] = unroll.life
            self._forget(stream)
        self._statistics[stream], self._seen[stream] = _gather(
            self._statistics[stream], self._seen[stream], trajectory.timestep
        )
        return self._credit.follow(trajectory, stream) if self._credit else None

    def _forget(self, stream: int) -> None:
        """The running episodes of a stream will not go on."""
        self._statistics[stream] = self._statistics[stream].interrupted()
        self._seen[stream] = jnp.zeros_like(self._seen[stream])
        self._memories[stream] = jax.tree.map(jnp.zeros_like, self._memories[stream])
        if self._credit:
            self._credit.forget(stream)

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
          running: with what is known about the running episodes of a single stream, if these can
            go on.
        """
        # Episodes that cannot go on leave nothing worth remembering.
        memory = self._memories[0] if running else None
        snapshot: dict[str, Any] = {"learner": _with_memory(self._state, memory)}
        if self._credit:
            snapshot["credit"] = self._credit.snapshot(running=running)
        if running:
            snapshot["statistics"] = self._statistics
        return snapshot

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Goes on from a snapshot."""
        self._state = snapshot["learner"]
        if self._state.memory is not None:
            self._memories[0] = self._state.memory
        self.updates = int(self._state.updates)
        if self._credit:
            self._credit.restore(snapshot["credit"])
        if "statistics" in snapshot:
            self._statistics = snapshot["statistics"]
            self._seen = [jnp.ones_like(seen) for seen in self._seen]


@eqx.filter_jit
def _gather(
    statistics: EpisodeStatistics, seen: Bool[Array, "batch"], timestep: TimeStep
) -> tuple[EpisodeStatistics, Bool[Array, "batch"]]:
    """Takes in all steps of an unroll but the first, which was the last of the one before.

    Args:
      statistics: so far.
      seen: whose running episodes were seen from their beginning; the others do not count.
      timestep: of the unroll.
    """

    def add(carry: tuple[EpisodeStatistics, Bool[Array, "batch"]], timestep: TimeStep):
        statistics, seen = carry
        seen = seen | timestep.first
        nothing = jax.tree.map(jnp.zeros_like, timestep)  # a FIRST step without reward
        return (statistics.add(select_rows(seen, timestep, nothing)), seen), None

    light = eqx.tree_at(lambda t: t.observation, timestep, timestep.reward)
    later = jax.tree.map(lambda x: x[1:], light)
    return jax.lax.scan(add, (statistics, seen | timestep.first[0]), later)[0]


def _nothing_gathered(config: Config, envs: int) -> EpisodeStatistics:
    step = first_step(None, config.task.event_names)
    return EpisodeStatistics.zero(jax.tree.map(lambda x: jnp.broadcast_to(x, (envs,)), step))


def _with_memory(state: LearnerState, memory: EpisodicMemory | None) -> LearnerState:
    return eqx.tree_at(lambda s: s.memory, state, memory, is_leaf=lambda x: x is None)


def _rows(memory: EpisodicMemory | None, rows: int) -> EpisodicMemory | None:
    """A copy of the first rows of a memory."""
    return jax.tree.map(lambda x: jnp.copy(x[:rows]), memory)


@eqx.filter_jit
def _remember(network: AgentNetwork, memory: EpisodicMemory, timestep: TimeStep) -> EpisodicMemory:
    """The memory after an unroll; its last step is the first of the next."""
    return remember(memory, network.torso(timestep.observation)[:-1], timestep.first[:-1])


_copy = eqx.filter_jit(
    lambda tree: jax.tree.map(lambda x: jnp.copy(x) if eqx.is_array(x) else x, tree)
)
