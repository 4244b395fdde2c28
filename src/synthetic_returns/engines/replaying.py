"""Learning from a replay, at any engine: what one seed keeps of its unrolls and draws from it."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from synthetic_returns.agents.agent import LearnerState, Metrics
from synthetic_returns.agents.r2d2.settings import R2D2Settings
from synthetic_returns.agents.replay.relabelling import relabel
from synthetic_returns.agents.replay.replay import SequenceReplay
from synthetic_returns.config import Config
from synthetic_returns.credit.data.segments import segment_of
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.engines.shapes import expected_trajectory
from synthetic_returns.types import Trajectory

__all__ = ["Replaying", "make_replaying"]

State = TypeVar("State", bound=LearnerState)


class Replaying:
    """A replay at work: it follows streams of unrolls, and has them paid by today's credit."""

    def __init__(
        self,
        config: Config,
        seed: int,
        driver: CreditDriver | None,
        *,
        streams: int = 1,
        num_envs: int | None = None,
    ):
        """Reserves the memory.

        Args:
          config: the settings.
          seed: of the run.
          driver: gives the credit, if there is any.
          streams: how many actors send unrolls.
          num_envs: environments of each; by default all.
        """
        assert isinstance(config.agent, R2D2Settings)
        self._agent, self._driver = config.agent, driver
        self._replay = SequenceReplay(
            config.agent.replay,
            expected_trajectory(config, num_envs or config.engine.num_envs),
            length=config.agent.burn_in + config.agent.sequence_length,
            streams=streams,
            credit=driver is not None,
            seed=seed,
        )
        self._new = np.zeros((), np.int64)  # steps since all were paid anew

    def follow(self, trajectory: Trajectory, stream: int = 0, *, follows: bool = True) -> None:
        """Takes in an unroll; the credit method learns from the episodes that end in it.

        Args:
          trajectory: what happened.
          stream: whose environments these are.
          follows: whether it goes on where the unroll before ended.
        """
        replay, driver = self._replay, self._driver
        number = replay.add(trajectory, stream, follows=follows)
        if driver is None:
            return
        segment = segment_of(trajectory, driver.view)
        for paid, credit in driver.follow(segment, number, stream):
            replay.pay(paid, np.asarray(credit.reward), stream)
        self._new += trajectory.action.size
        share = 0 if driver.frozen else self._agent.replay.relabel  # else it never changes
        if share and self._new >= share * replay.steps:
            relabel(replay, driver)
            self._new = np.zeros((), np.int64)

    def learn(self, update: Callable[..., Any], state: State) -> tuple[State, Metrics]:
        """The updates that are due, and the metrics of the last one; none before the warm-up.

        Args:
          update: the learner's, compiled.
          state: the learner's.
        """
        metrics: Metrics = {}
        if self._replay.steps < self._agent.replay.warmup or not len(self._replay):
            return state, metrics
        for _ in range(self._agent.updates_per_unroll):
            drawn = self._replay.sample(self._agent.batch_size)
            state, metrics, priority = update(
                state, drawn.trajectory, drawn.assignment, drawn.weight
            )
            self._replay.reprioritise(drawn, np.asarray(priority))
        return state, metrics

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
        if not self._agent.replay.save:
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


def make_replaying(
    config: Config,
    seed: int,
    driver: CreditDriver | None,
    *,
    streams: int = 1,
    num_envs: int | None = None,
) -> Replaying | None:
    """The replay of a configuration, if its agent has one; see ``Replaying``."""
    if not isinstance(config.agent, R2D2Settings):
        return None
    return Replaying(config, seed, driver, streams=streams, num_envs=num_envs)
