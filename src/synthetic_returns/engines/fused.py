"""The fused engine: environments, actor and learner in one process, the environments inside jit."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jaxtyping import Array, Float

from synthetic_returns.acting import actor
from synthetic_returns.acting.actor import ActorState
from synthetic_returns.agents.agent import LearnerState
from synthetic_returns.agents.r2d2.settings import R2D2Settings
from synthetic_returns.agents.registry import make_learner
from synthetic_returns.config import Config
from synthetic_returns.credit.data.segments import segment_of
from synthetic_returns.credit.explainer import Explainer
from synthetic_returns.credit.method import Assignment, Need
from synthetic_returns.engines.credit import explainer_of, make_driver
from synthetic_returns.engines.layouts import (
    ALIKE,
    ROWS,
    learner_layout,
    spread,
    spread_update,
    trajectory_layout,
)
from synthetic_returns.engines.programs import compile_fused, fused, staggering, unroll_of
from synthetic_returns.engines.replaying import Mixing, Rehearsing, make_replaying
from synthetic_returns.engines.settings import FusedSettings
from synthetic_returns.envs.base import Environment, VectorEnvironment
from synthetic_returns.nn.convolution import as_patches
from synthetic_returns.types import Trajectory
from synthetic_returns.utils.devices import AXIS, device_mesh

__all__ = ["FusedEngine"]


class FusedEngine:
    """Trains one agent per seed; several seeds are one vmapped computation.

    Where nothing has to happen between an unroll and its update, one call runs many of both: with a
    small network, a call from Python takes as long as the computation. Only reports, and credit
    methods that keep whole episodes on the host, wait for the device.

    Over several devices, each steps its share of the environments with a copy of the parameters,
    and gradients are summed: the same numbers as on one device, up to rounding.
    """

    def __init__(self, config: Config, seeds: Sequence[int]):
        """Draws all parameters and starts the environments."""
        self.config = config
        assert isinstance(config.engine, FusedSettings)
        self._settings = settings = config.engine
        self.steps_per_update = settings.steps_per_update
        if not isinstance(config.task, Environment):
            raise ValueError(
                f"the engine is 'fused' and {config.task_name} is not written in JAX: use the "
                "engine 'local'."
            )
        self._env = VectorEnvironment(config.task, contributions=config.needs_contributions)
        self._many = len(seeds) > 1
        if self._many and settings.devices > 1:
            raise ValueError(
                f"devices is {settings.devices} with {len(seeds)} seeds; several seeds are trained "
                "as one computation on one device: set devices to 1, or train them one by one."
            )
        devices = 1 if self._many or config.replays else settings.devices
        self._mesh = device_mesh(devices, settings.num_envs // settings.accumulate)
        self._learner = make_learner(config, axis=AXIS if self._mesh else None)
        states = [self._init(seed) for seed in seeds]
        self._set_states(states)
        # An agent with a replay buffer finds the unroll there, by its number.
        rehearses = isinstance(config.agent, R2D2Settings)
        item = (lambda _: None) if rehearses else (lambda trajectory: trajectory)
        drivers = [make_driver(config, seed, item=item) for seed in seeds]
        self._drivers = [driver for driver in drivers if driver is not None]
        if self._many and self._drivers and Need.WHOLE_EPISODES in config.credit.needs:
            raise ValueError(
                f"there are {len(seeds)} seeds and the credit method {config.credit.name!r} waits "
                "for complete episodes, which end at different times: train the seeds one by one."
            )
        self._replaying = make_replaying(config, seeds[0], drivers[0])
        if self._many and self._replaying:
            raise ValueError(
                f"there are {len(seeds)} seeds and each would need a replay of its own: train the "
                f"seeds one by one with the agent {config.agent.name!r}."
            )
        self._metrics: dict[str, Float[Array, "*seeds"]] = {}
        if self._mesh is None:
            programs = fused(config, many=self._many)
        else:
            unroll, update = unroll_of(config), self._learner.update
            trajectory = self._trajectory_layout(unroll)
            programs = compile_fused(
                spread(unroll, self._mesh, (ALIKE, ROWS), (ROWS, trajectory)),
                spread_update(update, self._mesh, self._learner_state, trajectory),
            )
        self._unroll, self._update, self._steps = programs
        self._updates_per_call = self._most_updates_per_call()

    def step(self, at_most: int = 1) -> int:
        """One unroll of every environment and one update from it, or several of these."""
        if most := self._updates_per_call:
            updates = min(at_most, most)
            self._learner_state, self._actor_state, self._metrics = self._steps(
                self._learner_state, self._actor_state, updates
            )
            return updates
        network = self._learner_state.agent.network
        arm = self._replaying.arm() if isinstance(self._replaying, Rehearsing) else None
        chosen = () if arm is None else (arm,)
        self._actor_state, trajectory = self._unroll(network, self._actor_state, *chosen)
        if isinstance(self._replaying, Rehearsing):
            self._replaying.follow(trajectory)
            self._learner_state, metrics = self._replaying.learn(self._update, self._learner_state)
            self._metrics = metrics or self._metrics
            return 1
        for played, assignment in self._credited(trajectory):
            self._learner_state, self._metrics = self._update(
                self._learner_state, played, assignment
            )
        return 1

    def agent(self, index: int) -> Any:
        """The network of one seed."""
        return self._one(self._learner_state, index).agent

    def explainer(self, index: int) -> Explainer | None:
        """What explains the credit of one seed, if there is any."""
        state = self._drivers[index].state if self._drivers else None
        return explainer_of(self.config, self.agent(index), state)

    def report(self) -> list[dict[str, float]]:
        """For every seed, the means over the episodes since the last report and the last losses."""
        reports = []
        for index in range(max(1, self._count)):
            statistics = self._one(self._actor_state, index).statistics
            losses = {name: float(x) for name, x in self._one(self._metrics, index).items()}
            report = statistics.means() | losses
            if self._replaying:
                report |= self._replaying.report()
            if self._drivers:
                credit = self._drivers[index].report()
                report |= {f"credit/{name}": x for name, x in credit.items()}
            reports.append(report)
        self._actor_state = eqx.tree_at(
            lambda state: state.statistics,
            self._actor_state,
            self._actor_state.statistics.reported(),
        )
        return reports

    def snapshot(self, index: int) -> dict[str, Any]:
        """All that one seed needs to go on later."""
        snapshot = {
            "learner": self._one(self._learner_state, index),
            "actor": self._one(self._actor_state, index),
        }
        if self._drivers:
            snapshot["credit"] = self._drivers[index].snapshot()
        if self._replaying:
            snapshot["replay"] = self._replaying.snapshot()
        return snapshot

    def restore(self, snapshots: Sequence[dict[str, Any]]) -> None:
        """Goes on from the snapshots of every seed."""
        self._set_states([(snapshot["learner"], snapshot["actor"]) for snapshot in snapshots])
        for driver, snapshot in zip(self._drivers, snapshots, strict=bool(self._drivers)):
            driver.restore(snapshot["credit"])
        if self._replaying:
            self._replaying.restore(snapshots[0].get("replay"))

    def close(self) -> None:
        """Nothing runs beside this engine."""

    def _set_states(self, states: Sequence[tuple[LearnerState, ActorState]]) -> None:
        self._learner_state, self._actor_state = _stack(states) if self._many else states[0]
        if mesh := self._mesh:
            rows = jax.tree.map(lambda _: ROWS, self._actor_state)
            layout = (learner_layout(self._learner_state), rows)
            self._learner_state, self._actor_state = jax.tree.map(
                lambda x, spec: jax.device_put(x, NamedSharding(mesh, spec)),
                (self._learner_state, self._actor_state),
                layout,
            )

    def _trajectory_layout(self, unroll: Callable[..., Any]) -> Any:
        network = self._learner_state.agent.network
        _, trajectory = jax.eval_shape(unroll, network, self._actor_state)
        return trajectory_layout(trajectory)

    def _most_updates_per_call(self) -> int:
        """Updates that can be one call; 0 if unrolls and updates are called apart."""
        if self._drivers or self._replaying:
            return 0
        if asked := self._settings.updates_per_call:
            return asked if asked > 1 else 0
        # On CPU, a convolution of XLA's is many times slower inside a loop.
        windows = self.config.agent.torso.windows
        slow = jax.default_backend() == "cpu" and not all(as_patches(*w) for w in windows)
        return 0 if slow else sys.maxsize

    @property
    def _count(self) -> int:
        return len(self._actor_state.key) if self._many else 1

    def _one(self, tree: Any, index: int) -> Any:
        if not self._many:
            return tree
        return jax.tree.map(lambda x: x[index] if eqx.is_array(x) else x, tree)

    def _init(self, seed: int) -> tuple[LearnerState, ActorState]:
        learner_key, actor_key = jax.random.split(jax.random.key(seed))
        learner_state = self._learner.init(learner_key)
        num_envs = self._settings.num_envs
        network = self._learner.behaviour(learner_state.agent.network, num_envs)
        actor_state = actor.start(self._env, network, num_envs, actor_key)
        if self._settings.stagger:
            actor_state = staggering(self._env)(network, actor_state)
        return learner_state, actor_state

    def _credited(self, trajectory: Trajectory) -> Sequence[tuple[Trajectory, Assignment | None]]:
        """The unrolls whose credit is known: this one, or earlier ones if it has to wait."""
        if isinstance(self._replaying, Mixing):
            mixed = self._replaying.mixed
            return [mixed(*one) for one in self._replaying.follow(trajectory, trajectory)]
        if not self._drivers:
            return [(trajectory, None)]
        view = self.config.view
        if not self._many:
            return self._drivers[0].follow(segment_of(trajectory, view), trajectory)
        assignments = [
            driver.follow(segment_of(self._one(trajectory, index), view), None)[0][1]
            for index, driver in enumerate(self._drivers)
        ]
        return [(trajectory, _stack(assignments))]


def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.stack(x) if eqx.is_array(x[0]) else x[0], *trees)
