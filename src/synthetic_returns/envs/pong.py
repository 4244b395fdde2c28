"""Pong: the first to 21 points wins.

Observation: the court without the score above it, as bright as what differs from the ground.
Actions: the game's six; two of them move the paddle up, two down, two leave it.
Reward: +1 for a point, -1 for a point of the other side.
Termination: 21 points of either side.
"""

import dataclasses
from collections.abc import Mapping
from typing import Annotated

import numpy as np
import tyro

from synthetic_returns.envs.atari import Atari, AtariEnvironments
from synthetic_returns.envs.host import HostEnvironments, draw_seed
from synthetic_returns.envs.task import Task
from synthetic_returns.types import Key

__all__ = ["TASKS", "Pong", "PongEnvironments"]


@dataclasses.dataclass(frozen=True)
class Pong(Atari):
    """The game of Pong."""

    game: Annotated[str, tyro.conf.Suppress] = "pong"
    """The name of the ROM."""
    height: int = 105
    """Rows of a frame, before cropping."""
    width: int = 80
    """Columns of a frame, before cropping."""
    rows: tuple[int, int] | None = (17, 97)
    """First row that is shown and the first that is not; None shows the score too."""
    frames: int = 2
    """Newest frames in one observation."""
    ground: int | None = 87
    """The grey of the court, which is shown as 0."""

    @property
    def event_names(self) -> tuple[str, ...]:
        """``success`` is to win the game."""
        return ("success", "point", "point_lost")

    def environments(self, num_envs: int, key: Key) -> HostEnvironments:
        """Games side by side."""
        return PongEnvironments(self, num_envs, draw_seed(key))


class PongEnvironments(AtariEnvironments):
    """A batch of games, and the score of each."""

    def restart(self, frame: np.ndarray, started: np.ndarray) -> None:
        """Sets the score to nothing."""
        if not hasattr(self, "_lead"):
            self._lead = np.zeros(len(frame))
        self._lead[started] = 0

    def events(
        self, frame: np.ndarray, reward: np.ndarray, last: np.ndarray
    ) -> Mapping[str, np.ndarray]:
        """Points, and who won."""
        del frame
        self._lead += reward
        return {
            "success": last & (self._lead > 0),
            "point": np.maximum(reward, 0),
            "point_lost": np.maximum(-reward, 0),
        }


TASKS = (
    Task(
        name="pong",
        description="Atari: the first to 21 points wins",
        environment=Pong,
        random_return=-20.7,
        optimal_return=21.0,
        unscripted="nobody has written one that reads the frames",
        events={
            "success": "the game was won",
            "point": "a point was won",
            "point_lost": "a point was lost",
        },
        presets={
            "fast": {
                "steps": 2_000_000,
                # The emulator takes most of the time: learn from each unroll several times.
                "engine.num_envs": 16,
                "agent.epochs": 3,
                "optimizer.learning_rate": 1e-3,
                # A point is lost a few steps after the ball was not met: no need to look further.
                "agent.discount": 0.95,
                # Few and large patches, because little of the court is ever worth a look.
                "agent.torso.channels": (32, 64),
                "agent.torso.patches": (8, 2),
            },
        },
    ),
)
