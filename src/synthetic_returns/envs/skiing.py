"""Skiing: pass twenty gates on the way down, as fast as you can; misses are paid at the end.

Observation: how dark the display and the course are. The display shows the clock and how many gates
  are left to pass: a baseline that can read these explains the final reward without knowing what
  earned it. ``rows=None`` shows the whole frame.
Actions: 0 keeps the heading, 1 turns right, 2 turns left. The game turns the skier by one notch in
  about eight frames, so that is the length of a step.
Reward: minus the hundredths of a second that passed, and, with the last step, -500 for every gate
  that was missed.
Termination: the finish. The game's clock stops at five minutes: such an episode is cut off, and
  has no penalty for gates, so that doing nothing earns -30,000.
"""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
import tyro

from synthetic_returns.envs.atari import Atari, AtariEnvironments
from synthetic_returns.envs.credit_measure import CreditMeasure, MassNearEvent
from synthetic_returns.envs.host import HostEnvironments, draw_seed
from synthetic_returns.envs.spec import EventMark
from synthetic_returns.envs.task import UNKNOWN, Task
from synthetic_returns.types import Key

__all__ = ["GATES", "PENALTY", "TASKS", "Skiing", "SkiingEnvironments"]

GATES = 20
PENALTY = 500  # points for a gate that was missed
TIME_LIMIT = 299.0  # seconds; the clock stops at five minutes
SCREEN = (210, 160)  # rows and columns of the emulator
COUNTER = (slice(4, 14), slice(60, 84))  # where the screen shows the gates that are left to pass
CHANGED = 40  # of 255: grey levels that no shrinking of an unchanged picture explains


@dataclasses.dataclass(frozen=True)
class Skiing(Atari):
    """The slalom of Skiing."""

    game: Annotated[str, tyro.conf.Suppress] = "skiing"
    """The name of the ROM."""
    height: int = 53
    """Rows of a frame, before cropping."""
    width: int = 80
    """Columns of a frame, before cropping."""
    rows: tuple[int, int] | None = (1, 49)
    """First row that is shown and the first that is not; the display is in the first five."""
    frames: int = 2
    """Newest frames in one observation."""
    frame_skip: int = 8
    """Frames of the emulator for each step; the action is repeated in them."""
    ground: int | None = 236
    """The grey of snow, which is shown as 0."""
    max_frames: int = 18_200
    """Frames after which an episode is cut off; the game stops at 18,000 by itself."""

    event_marks: ClassVar = {"gate": EventMark("square", "blue")}

    @property
    def event_names(self) -> tuple[str, ...]:
        """``success`` is the share of the gates passed, ``seconds`` the time of the race."""
        return ("success", "gate", "gates_missed", "seconds")

    @property
    def credit_measure(self) -> CreditMeasure | None:
        """Credit should be earned at the gates, and be what a missed one costs."""
        return MassNearEvent(
            question="share of the positive credit within two steps of a gate that was passed",
            required=0.8,
            event="gate",
            called="gates passed",
            within=2,
            worth=PENALTY,
        )

    def environments(self, num_envs: int, key: Key) -> HostEnvironments:
        """Races side by side."""
        return SkiingEnvironments(self, num_envs, draw_seed(key))


class SkiingEnvironments(AtariEnvironments):
    """A batch of races, and the gates passed in each, read off the display."""

    def restart(self, frame: np.ndarray, started: np.ndarray) -> None:
        """Forgets the race before."""
        if not hasattr(self, "_counter"):
            self._counter = self._shown_counter(frame)
            self._passed, self._seconds = np.zeros(len(frame)), np.zeros(len(frame))
            self._flickers = np.zeros(len(frame), bool)
        self._counter = np.where(started[:, None, None], self._shown_counter(frame), self._counter)
        for array in (self._passed, self._seconds, self._flickers):
            array[started] = 0

    def endings(
        self, reward: np.ndarray, terminated: np.ndarray, truncated: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The finish ends a race for good, the clock cuts it off."""
        self._seconds += _seconds(reward)
        timed_out = np.asarray(terminated) & (self._seconds >= TIME_LIMIT)
        return np.asarray(terminated) & ~timed_out, np.asarray(truncated) | timed_out

    def events(
        self, frame: np.ndarray, reward: np.ndarray, last: np.ndarray
    ) -> Mapping[str, np.ndarray]:
        """The counter changes when a gate is passed; what was missed is known at the end."""
        counter = self._shown_counter(frame)
        changed = np.any(np.abs(counter - self._counter) > CHANGED, axis=(1, 2))
        # Where two frames were merged, a change shows as two, one step after the other.
        gate = changed & ~self._flickers
        self._counter, self._flickers = counter, changed
        self._passed += gate
        return {
            "success": gate / GATES,
            "gate": gate,
            "gates_missed": np.where(last, GATES - self._passed, 0),
            "seconds": np.where(last, self._seconds, 0),
        }

    def _shown_counter(self, frame: np.ndarray) -> np.ndarray:
        """The pixels of the display that show the number of gates, as signed numbers."""
        sides = zip(COUNTER, frame.shape[1:], SCREEN, strict=True)
        rows, columns = (
            slice(-(-part.start * size // whole), part.stop * size // whole)
            for part, size, whole in sides
        )
        return frame[:, rows, columns].astype(np.int16)


def _seconds(reward: np.ndarray) -> np.ndarray:
    """The time of a step: its reward without the penalty, which is in whole gates."""
    return (-reward % PENALTY) / 100


TASKS = (
    Task(
        name="skiing",
        description="Atari: pass 20 gates; those missed are paid at the end",
        environment=Skiing,
        random_return=-17_098.1,
        optimal_return=UNKNOWN,
        unscripted="nobody has written one that reads the frames",
        events={
            "success": "share of the gates passed",
            "gate": "a gate was passed",
            "gates_missed": "gates missed, counted at the end",
            "seconds": "the time of the race, counted at the end",
        },
        default_preset="counter",
        preset_notes={"counter": "c sees the counter of gates"},
        missing_presets={
            "fast": "what was called so is 'counter', because there c sees the counter of gates; "
            "the name is kept for a preset that sees the whole frame, until there is a result of "
            "one"
        },
        presets={
            # In units of a missed gate, so that losses and their weights are those of other tasks
            # (ours: the paper says nothing about the size of Skiing's rewards).
            "paper": {"reward.beta": 0.0, "reward.scale": 1 / 500},
            "counter": {
                "steps": 7_500_000,  # of 8 frames: 60 million frames
                # In units of a missed gate; a step costs 0.027.
                "reward.scale": 1 / 500,
                # The penalties of the last step are what synthetic returns have paid before.
                "reward.last_reward": 0.0,
                # Who turns at random skis across the slope, and passes hardly a gate. Who mostly
                # keeps the heading passes some, now more, now fewer: only runs that differ tell
                # what a gate is worth.
                "agent.action_prior": 0.9,
                "agent.entropy_cost": 0.05,
                # A gate is twelve steps away, and how to get there takes many small updates.
                "engine.num_envs": 16,
                "engine.unroll_length": 10,
                "agent.epochs": 2,
                "optimizer.learning_rate": 1e-3,
                "agent.discount": 0.97,
                # Where the flags are, not only that there are some: 6 x 10 places are kept.
                "agent.torso.channels": (16, 32),
                "agent.torso.patches": (4, 2),
                # What changes on the display: the number of gates left, and nothing else of it. It
                # falls when a gate is passed; what that means is for c to find out.
                "view.rows": (0, 3),
                "view.columns": (30, 46),
                "view.changes": True,
                "view.stride": 1,
                # The clock's limit escapes the penalties: as bad as to miss every gate.
                "view.truncated_reward": -10_000.0,
                "credit.encoder.channels": (),
                "credit.encoder.patches": (),
                "credit.head_sizes": (32,),
                "credit.gate": "end",
                # A b that could read the number would explain the penalties, and leave nothing to
                # c.
                "credit.current": "time",
                "credit.end": True,
                "credit.learning_rate": 2e-3,
                "credit.replay.slots": 1024,
                "credit.replay.batch_size": 16,
                "credit.replay.updates_per_episode": 10.0,
                "credit.replay.warmup": 16,
            },
        },
    ),
)
