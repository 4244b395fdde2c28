"""The learner of engines whose actors run apart from it: takes unrolls, publishes parameters."""

import collections
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from synthetic_returns.acting.statistics import EpisodeStatistics
from synthetic_returns.agents.agent import Agent, LearnerState
from synthetic_returns.agents.registry import make_learner
from synthetic_returns.config import Config
from synthetic_returns.credit.auxiliary import AuxiliaryMethod
from synthetic_returns.credit.data.segments import segment_of
from synthetic_returns.credit.explainer import Explainer
from synthetic_returns.credit.method import Assignment
from synthetic_returns.engines.credit import explainer_of, make_driver
from synthetic_returns.engines.layouts import spread_update, trajectory_layout
from synthetic_returns.engines.programs import compiled_update
from synthetic_returns.engines.replaying import Mixing, Rehearsing, make_replaying
from synthetic_returns.envs.base import select_rows
from synthetic_returns.nn.networks import Network
from synthetic_returns.types import TimeStep, Trajectory, first_step, side_by_side
from synthetic_returns.utils.devices import AXIS, device_mesh

__all__ = ["Policy", "Unroll", "UnrollLearner"]


@dataclasses.dataclass(frozen=True)
class Policy:
    """What actors act with: a network, and how many updates made it."""

    network: Network
    version: int


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Unroll:
    """What an actor sends: a trajectory, whose it is and what policy it began with.

    Attributes:
      stream: index of the actor; its unrolls follow each other, one for each update.
      version: of the policy that acted.
      trajectory: ``[T + 1, B]``.
      life: counts the restarts of the actor's environments; when it changes, all started anew.
      observed: whether only its episodes are followed, and no policy learns from it.
    """

    stream: int
    version: int
    trajectory: Trajectory
    life: int = 0
    observed: bool = False


class UnrollLearner:
    """Everything of one seed but its environments.

    Attributes:
      config: the settings.
      updates: how many there were.
    """

    def __init__(self, config: Config, seed: int, streams: int, num_envs: int | None = None):
        """Draws all parameters.

        Args:
          config: the settings.
          seed: of the run.
          streams: how many actors send unrolls. Each has a memory, running episodes and statistics
            of its own, because these follow its environments.
          num_envs: environments of each; by default the whole batch of an update.
        """
        self.config, settings = config, config.engine
        num_envs = num_envs or settings.num_envs
        devices = 1 if config.replays else settings.devices
        self._mesh = device_mesh(devices, settings.num_envs // settings.accumulate)
        learner_key, self.actor_key = jax.random.split(jax.random.key(seed))
        self._learner = learner = make_learner(config, axis=AXIS if self._mesh else None)
        self._state = learner.init(learner_key)
        self._memories = [_first_envs(self._state.memory, num_envs) for _ in range(streams)]
        self._driver = make_driver(
            config, seed, streams, num_envs, lambda played: Unroll(0, 0, played)
        )
        self._replaying = make_replaying(
            config, seed, self._driver, streams=streams, num_envs=num_envs
        )
        self._interrupted = [False] * streams
        self._credited: collections.deque[tuple[Unroll, Assignment | None]] = collections.deque()
        self._statistics = [_nothing_gathered(config, num_envs) for _ in range(streams)]
        self._seen = [jnp.zeros(num_envs, bool) for _ in range(streams)]
        self._lives = [0] * streams
        self._metrics: dict[str, Float[Array, ""]] = {}
        self._lags: list[int] = []
        self._update: Callable[..., Any] | None = None
        self.updates = 0

    def policy(self) -> Policy:
        """A copy of the newest policy: updates are made in place, while actors go on acting."""
        return Policy(_copy(self._state.agent.network), self.updates)

    def behaviour(self, policy: Policy, stream: int) -> Network:
        """What acts in the environments of a stream."""
        num_envs, streams = len(self._seen[stream]), len(self._seen)
        replaying = self._replaying
        arm = replaying.arm(stream) if isinstance(replaying, Rehearsing) else None
        return self._learner.behaviour(policy.network, num_envs, stream, streams, arm)

    def update(self, *unrolls: Unroll) -> None:
        """One optimisation step; learns from the episodes that ended, if they give the credit.

        If credit has to wait for the end of episodes, the step is one with earlier unrolls, and
        there may be none, or several.

        Args:
          *unrolls: of different streams, side by side the batch of an update.
        """
        if isinstance(self._replaying, Rehearsing):
            self._rehearse(self._replaying, unrolls)
            return
        for unroll in unrolls:
            self._credited += self._follow(unroll)
        while len(self._credited) >= len(unrolls):
            self._learn([self._credited.popleft() for _ in unrolls])

    def observe(self, unroll: Unroll) -> None:
        """Follows the episodes of an unroll that is too old to be learned from at once.

        A replay keeps it all the same: what is drawn from it is older.
        """
        self._follow(dataclasses.replace(unroll, observed=True))
        memory = self._memories[unroll.stream]  # a replay's sequences bring theirs with them
        if isinstance(method := self.config.credit, AuxiliaryMethod) and memory is not None:
            network = self._state.agent.network
            self._memories[unroll.stream] = _remember(
                method, network, memory, unroll.trajectory.timestep
            )

    def _rehearse(self, replaying: Rehearsing, unrolls: Sequence[Unroll]) -> None:
        """Keeps unrolls, and learns from what is drawn from all that are kept."""
        for unroll in unrolls:
            self._lags.append(self.updates - unroll.version)
            self._follow(unroll)
        if self._update is None:
            self._update = compiled_update(self.config)
        self._state, metrics = replaying.learn(self._update, self._state)
        self._metrics = metrics or self._metrics
        self.updates = int(self._state.updates)

    def _learn(self, batch: Sequence[tuple[Unroll, Assignment | None]]) -> None:
        unrolls = [unroll for unroll, _ in batch]
        self._lags += [self.updates - unroll.version for unroll in unrolls]
        memories = [self._memories[unroll.stream] for unroll in unrolls]
        state = _with_memory(self._state, jax.tree.map(lambda *x: jnp.concatenate(x), *memories))
        trajectory = side_by_side([unroll.trajectory for unroll in unrolls])
        assignment = jax.tree.map(
            lambda *x: jnp.concatenate(x, axis=1), *(credit for _, credit in batch)
        )
        if isinstance(self._replaying, Mixing):
            trajectory, assignment = self._replaying.mixed(trajectory, assignment)
        if self._update is None:
            self._update = self._compiled_update(state, trajectory)
        self._state, self._metrics = self._update(state, trajectory, assignment)
        for row, unroll in enumerate(unrolls):
            self._memories[unroll.stream] = jax.tree.map(
                lambda x, row=row: jnp.split(x, len(unrolls))[row], self._state.memory
            )
        self.updates += 1

    def _compiled_update(self, state: LearnerState, trajectory: Trajectory) -> Callable[..., Any]:
        if self._mesh is None:
            return compiled_update(self.config)
        layout = trajectory_layout(trajectory)
        update = spread_update(self._learner.update, self._mesh, state, layout)
        return eqx.filter_jit(update, donate="all")

    def _follow(self, unroll: Unroll) -> list[tuple[Unroll, Assignment | None]]:
        """Records the episodes that end in an unroll; returns the unrolls whose credit is known."""
        self._note(unroll)
        stream = unroll.stream
        if self._replaying:
            follows = not self._interrupted[stream]
            self._interrupted[stream] = False
            credited = self._replaying.follow(unroll.trajectory, unroll, stream, follows=follows)
        elif self._driver:
            segment = segment_of(unroll.trajectory, self.config.view)
            credited = self._driver.follow(segment, unroll, stream)
        else:
            credited = [(unroll, None)]
        return [(unroll, credit) for unroll, credit in credited if not unroll.observed]

    def _note(self, unroll: Unroll) -> None:
        """Counts the episodes of an unroll; those of an earlier life do not go on."""
        stream = unroll.stream
        if unroll.life != self._lives[stream]:
            self._lives[stream] = unroll.life
            self._forget(stream)
        self._statistics[stream], self._seen[stream] = _gather(
            self._statistics[stream], self._seen[stream], unroll.trajectory.timestep
        )

    def _forget(self, stream: int) -> None:
        """Drops the running episodes of a stream."""
        self._interrupted[stream] = True
        self._statistics[stream] = self._statistics[stream].interrupted()
        self._seen[stream] = jnp.zeros_like(self._seen[stream])
        self._memories[stream] = jax.tree.map(jnp.zeros_like, self._memories[stream])
        if self._driver:
            self._driver.forget(stream)

    @property
    def agent(self) -> Agent:
        """The agent as it is now."""
        return self._state.agent

    @property
    def explainer(self) -> Explainer | None:
        """What explains the credit, if there is any."""
        state = None if self._driver is None else self._driver.state
        return explainer_of(self.config, self.agent, state)

    def report(self) -> dict[str, float]:
        """Means over the episodes since the last report, the last losses, and the lag."""
        report = jax.tree.map(lambda *x: jnp.concatenate(x), *self._statistics).means()
        self._statistics = [statistics.reported() for statistics in self._statistics]
        report |= {name: float(x) for name, x in self._metrics.items()}
        if self._driver:
            report |= {f"credit/{name}": x for name, x in self._driver.report().items()}
        if self._replaying:
            report |= self._replaying.report()
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
        if self._driver:
            snapshot["credit"] = self._driver.snapshot(running=running)
        if self._replaying:
            snapshot["replay"] = self._replaying.snapshot()
        if running:
            snapshot["statistics"] = self._statistics
        return snapshot

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Restores a snapshot."""
        self._state = snapshot["learner"]
        if self._state.memory is not None:
            self._memories[0] = self._state.memory
        self.updates = int(self._state.updates)
        if self._driver:
            self._driver.restore(snapshot["credit"])
        if self._replaying:
            self._replaying.restore(snapshot.get("replay"))
            # Unless the environments were saved too, other episodes begin.
            self._interrupted = [True] * len(self._lives)
        if "statistics" in snapshot:
            self._interrupted = [False] * len(self._lives)
            self._statistics = snapshot["statistics"]
            self._seen = [jnp.ones_like(seen) for seen in self._seen]


@eqx.filter_jit
def _gather(
    statistics: EpisodeStatistics, seen: Bool[Array, "batch"], timestep: TimeStep
) -> tuple[EpisodeStatistics, Bool[Array, "batch"]]:
    """Adds all steps of an unroll but the first, which was the last of the one before.

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


def _nothing_gathered(config: Config, num_envs: int) -> EpisodeStatistics:
    step = first_step(None, config.task.event_names)
    return EpisodeStatistics.zero(jax.tree.map(lambda x: jnp.broadcast_to(x, (num_envs,)), step))


def _with_memory(state: LearnerState, memory: Any) -> LearnerState:
    return eqx.tree_at(lambda s: s.memory, state, memory, is_leaf=lambda x: x is None)


def _first_envs(memory: Any, num_envs: int) -> Any:
    """A copy of the memory of the first environments."""
    return jax.tree.map(lambda x: jnp.copy(x[:num_envs]), memory)


@eqx.filter_jit
def _remember(method: AuxiliaryMethod, network: Network, memory: Any, timestep: TimeStep) -> Any:
    """The memory after an unroll."""
    return method.remember(memory, network.torso(timestep.observation), timestep.first)


_copy = eqx.filter_jit(
    lambda tree: jax.tree.map(lambda x: jnp.copy(x) if eqx.is_array(x) else x, tree)
)
