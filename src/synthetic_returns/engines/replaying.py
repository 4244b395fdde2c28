"""Learning from a replay buffer, for any engine: the unrolls of one seed, and samples of them."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from synthetic_returns.agents.agent import LearnerState, Metrics
from synthetic_returns.agents.impala.settings import ImpalaSettings
from synthetic_returns.agents.r2d2.bandit import Bandits
from synthetic_returns.agents.r2d2.settings import R2D2Settings
from synthetic_returns.agents.replay.relabelling import relabel
from synthetic_returns.agents.replay.replay import SequenceReplay
from synthetic_returns.agents.replay.settings import ReplaySettings
from synthetic_returns.config import Config
from synthetic_returns.credit.auxiliary import AuxiliaryMethod
from synthetic_returns.credit.data.segments import segment_of
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.method import Assignment
from synthetic_returns.engines.shapes import expected_trajectory
from synthetic_returns.types import Trajectory, side_by_side

__all__ = ["Mixing", "Rehearsing", "Replaying", "make_replaying"]

State = TypeVar("State", bound=LearnerState)
Item = TypeVar("Item")


class Replaying:
    """Runs a replay buffer: stores streams of unrolls, and keeps their credit current."""

    def __init__(
        self, settings: ReplaySettings, replay: SequenceReplay, driver: CreditDriver | None
    ):
        """Nothing is kept yet.

        Args:
          settings: of the replay.
          replay: empty.
          driver: gives the credit, if there is any.
        """
        self._settings, self._replay, self._driver = settings, replay, driver
        self._new = np.zeros((), np.int64)  # steps since credit was recomputed

    def follow(
        self, trajectory: Trajectory, item: Item = None, stream: int = 0, *, follows: bool = True
    ) -> list[tuple[Item, Assignment | None]]:
        """Adds an unroll; the credit method learns from the episodes that end in it.

        Args:
          trajectory: what happened.
          item: belongs to the credit, and is returned with it.
          stream: whose environments these are.
          follows: whether it continues the unroll before it.
        """
        replay, driver = self._replay, self._driver
        number = replay.add(trajectory, stream, follows=follows)
        if driver is None:
            return [(item, None)]
        segment = segment_of(trajectory, driver.view)
        credited = driver.follow(segment, (number, item), stream)
        for (paid, _), credit in credited:
            replay.pay(paid, np.asarray(credit.reward), stream)
        self._new += trajectory.action.size
        share = 0 if driver.frozen else self._settings.relabel  # else it never changes
        if share and self._new >= share * replay.steps:
            relabel(replay, driver)
            self._new = np.zeros((), np.int64)
        return [(item, credit) for (_, item), credit in credited]

    @property
    def ready(self) -> bool:
        """Whether there is something to draw, and enough of it."""
        return self._replay.steps >= self._settings.warmup and len(self._replay) > 0

    def report(self) -> dict[str, float]:
        """How much is kept."""
        replay = self._replay
        report = {
            "steps": float(replay.steps),
            "sequences": float(len(replay)),
            "mb": replay.bytes / 1e6,
        }
        return {f"replay/{name}": x for name, x in report.items()}

    def snapshot(self) -> dict[str, Any] | None:
        """All that changes; None if it is not to be saved."""
        if not self._settings.save:
            return None
        return {"replay": self._replay.snapshot(), "new": self._new}

    def restore(self, snapshot: dict[str, Any] | None) -> None:
        """Goes on from a snapshot, or with nothing."""
        if snapshot is not None:
            self._replay.restore(snapshot["replay"])
            self._new = snapshot["new"]
        elif self._driver is not None:  # what waits for credit is not there any more
            for stream in range(len(self._driver.recorders)):
                self._driver.give_up(stream)


class Rehearsing(Replaying):
    """For an agent that learns only from sequences drawn by priority."""

    def __init__(self, agent: R2D2Settings, replay: SequenceReplay, driver: CreditDriver | None):
        """Nothing is kept yet.

        Args:
          agent: its settings.
          replay: empty.
          driver: gives the credit, if there is any.
        """
        super().__init__(agent.replay, replay, driver)
        self._agent = agent
        self._bandits: Bandits | None = None
        if agent.bandit.arms:
            streams, _, num_envs = replay.priority.shape
            self._bandits = Bandits(agent.bandit, streams, num_envs, replay.seed)

    def follow(
        self, trajectory: Trajectory, item: Item = None, stream: int = 0, *, follows: bool = True
    ) -> list[tuple[Item, Assignment | None]]:
        """Adds an unroll; bandits choose anew where episodes ended in it."""
        if self._bandits:
            if not follows:
                self._bandits.forget(stream)
            self._bandits.follow(trajectory, stream)
        return super().follow(trajectory, item, stream, follows=follows)

    def arm(self, stream: int = 0) -> Int[Array, "envs"] | None:
        """What a bandit has chosen in each environment of a stream, if there are any."""
        return None if self._bandits is None else jnp.array(self._bandits.arm[stream])

    def learn(self, update: Callable[..., Any], state: State) -> tuple[State, Metrics]:
        """The updates that are due, and the metrics of the last one; none before the warm-up.

        Args:
          update: the learner's, compiled.
          state: the learner's.
        """
        metrics: Metrics = {}
        if not self.ready:
            return state, metrics
        for _ in range(self._agent.updates_per_unroll):
            drawn = self._replay.sample(self._agent.batch_size)
            state, metrics, priority = update(
                state, drawn.trajectory, drawn.assignment, drawn.weight, drawn.past
            )
            self._replay.reprioritise(drawn, np.asarray(priority))
        return state, metrics

    def report(self) -> dict[str, float]:
        """How much is kept, and what bandits choose."""
        chosen = self._bandits.report() if self._bandits else {}
        return super().report() | {f"bandit/{name}": x for name, x in chosen.items()}

    def snapshot(self) -> dict[str, Any] | None:
        """All that changes; None if it is not to be saved."""
        snapshot = super().snapshot()
        if snapshot is not None and self._bandits:
            snapshot["bandits"] = self._bandits.snapshot()
        return snapshot

    def restore(self, snapshot: dict[str, Any] | None) -> None:
        """Goes on from a snapshot, or with nothing."""
        super().restore(snapshot)
        if snapshot is not None and self._bandits:
            self._bandits.restore(snapshot["bandits"])


class Mixing(Replaying):
    """For an agent that learns from new unrolls and from replayed ones."""

    def __init__(self, agent: ImpalaSettings, replay: SequenceReplay, driver: CreditDriver | None):
        """Nothing is kept yet.

        Args:
          agent: its settings.
          replay: empty.
          driver: gives the credit, if there is any.
        """
        super().__init__(agent.replay, replay, driver)
        self._beside = agent.replay.beside

    def mixed(
        self, trajectory: Trajectory, assignment: Assignment | None
    ) -> tuple[Trajectory, Assignment | None]:
        """New unrolls and, once there are enough, earlier ones beside them."""
        count = self._beside(trajectory.action.shape[1])
        if not (count and self.ready):
            return trajectory, assignment
        drawn = self._replay.sample(count)
        # Events are not kept, and no agent sees them.
        timestep = dataclasses.replace(trajectory.timestep, events={})
        new = dataclasses.replace(trajectory, timestep=timestep)
        batch = side_by_side([new, drawn.trajectory])
        if assignment is None or drawn.assignment is None:
            return batch, None
        rewards = [assignment.reward, drawn.assignment.reward]
        return batch, Assignment(jnp.concatenate(rewards, axis=1))  # pyright: ignore


def make_replaying(
    config: Config,
    seed: int,
    driver: CreditDriver | None,
    *,
    streams: int = 1,
    num_envs: int | None = None,
) -> Rehearsing | Mixing | None:
    """The replay of a configuration, if its agent has one; reserves the memory.

    Args:
      config: the settings.
      seed: of the run.
      driver: gives the credit, if there is any.
      streams: how many actors send unrolls.
      num_envs: environments of each; by default all.
    """
    if not config.replays:
        return None
    agent = config.agent

    def replay(length: int, *, history: int = 0, **exponents: float) -> SequenceReplay:
        return SequenceReplay(
            agent.replay.capacity,
            expected_trajectory(config, num_envs or config.engine.num_envs),
            length=length,
            history=history,
            streams=streams,
            credit=driver is not None,
            seed=seed,
            **exponents,
        )

    if isinstance(agent, ImpalaSettings):
        return Mixing(agent, replay(config.engine.unroll_length), driver)
    history = 0
    if isinstance(config.credit, AuxiliaryMethod):
        # Its memory of the episode reaches the first step that is learned from.
        reaches = config.credit.history(config.task.max_episode_steps)
        history = max(0, reaches - agent.burn_in)
    sequences = replay(
        agent.burn_in + agent.sequence_length,
        history=history,
        priority_exponent=agent.replay.priority_exponent,
        importance_exponent=agent.replay.importance_exponent,
    )
    return Rehearsing(agent, sequences, driver)
