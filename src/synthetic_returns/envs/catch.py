"""Catch: balls fall one after another, and a paddle has to be under each of them.

Observation: a board of ``[rows, columns, 1]`` with a 1 at the ball and a 1 at the paddle in the
  bottom row. In the landing frame, a caught ball is one pixel and a missed ball is two. With
  ``scoreboard``, rows below the board show what was earned so far, one pixel for each ball.
Actions: 0 moves the paddle left, 1 lets it stay, 2 moves it right.
Reward: +1 with the landing frame of a caught ball and ``miss_reward`` with that of a missed one;
  with ``delayed``, 0 until the end and the sum of them all on the last step.
Termination: a ball starts in the top row of a random column and falls one row a step. The step
  after a landing shows the next ball in the top row while the paddle moves on as usual; the
  landing of ball number ``runs`` ends the episode. So 20 runs on 7 rows are 140 frames.

The paddle starts in the centre of an episode and stays where it is between runs. bsuite's Catch
is ``Catch(runs=1, rows=10, columns=5, miss_reward=-1.0)``.
"""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int

from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.checks import require, require_at_least
from synthetic_returns.envs.credit_measure import CreditMeasure, TellsApart
from synthetic_returns.envs.spec import EventMark
from synthetic_returns.envs.task import Task
from synthetic_returns.types import Key, TimeStep, first_step, next_step

__all__ = ["TASKS", "Catch", "CatchState"]


class CatchState(eqx.Module):
    """The clock, the paddle, the columns of all balls of the episode, and what is to be paid."""

    time: Int[Array, ""]
    paddle: Int[Array, ""]
    columns: Int[Array, "runs"]
    unpaid: Float32[Array, ""]


@dataclasses.dataclass(frozen=True)
class Catch(Environment[CatchState]):
    """The Catch task.

    Attributes:
      runs: balls in an episode.
      rows: height of the board; a ball falls for ``rows - 1`` steps.
      columns: width of the board.
      miss_reward: the reward of a ball that is not caught.
      delayed: pay all rewards of the episode on its last step.
      scoreboard: show what the last step will pay for the balls so far.
    """

    runs: int = 20
    rows: int = 7
    columns: int = 7
    miss_reward: float = 0.0
    delayed: bool = False
    scoreboard: bool = False

    truncates: ClassVar = False
    event_marks: ClassVar = {
        "catch": EventMark("triangle", "green"),
        "miss": EventMark("cross", "red"),
    }

    def __post_init__(self) -> None:
        require_at_least(1, runs=self.runs, columns=self.columns)
        require_at_least(2, rows=self.rows)
        require(
            self.delayed or not self.scoreboard,
            "scoreboard=True shows what is paid at the end, and without delayed=True nothing is: "
            "set delayed=True, or leave scoreboard out.",
        )

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The board, and below it the scoreboard, as an image with one channel."""
        return (self.rows + self._score_rows, self.columns, 1)

    @property
    def num_actions(self) -> int:
        """Left, stay and right."""
        return 3

    @property
    def max_episode_steps(self) -> int:
        """Every frame but the last one is left by a step."""
        return self.runs * self.rows - 1

    @property
    def event_names(self) -> tuple[str, ...]:
        """``catch`` or ``miss`` at a landing; ``success`` is the share of balls caught."""
        return ("success", "catch", "miss")

    @property
    def credit_measure(self) -> CreditMeasure | None:
        """Landings are what counts; what pays at once needs no credit."""
        if not self.delayed:
            return None
        return TellsApart(
            question="c tells caught from missed landings",
            good=("catch", "caught"),
            bad=("miss", "missed"),
            required=0.99,
        )

    def reset(self, key: Key) -> tuple[CatchState, TimeStep]:
        """Draws the column of every ball of the episode."""
        columns = jax.random.randint(key, (self.runs,), 0, self.columns)
        state = CatchState(jnp.int32(0), jnp.int32(self.columns // 2), columns, jnp.float32(0))
        return state, first_step(self._observe(state), self.event_names)

    def step(self, state: CatchState, action: Int[Array, ""]) -> tuple[CatchState, TimeStep]:
        """Moves the paddle and drops the ball, or shows the next ball after a landing."""
        time = state.time + 1
        paddle = jnp.clip(state.paddle + action - 1, 0, self.columns - 1)
        ball_row, ball_column = self.ball(time, state.columns)
        landed = ball_row == self.rows - 1
        caught = (landed & (ball_column == paddle)).astype(jnp.float32)
        missed = landed.astype(jnp.float32) - caught
        last = time == self.max_episode_steps

        earned = state.unpaid + caught + missed * self.miss_reward
        reward = jnp.where(last, earned, 0.0) if self.delayed else earned
        # The last frame still shows the score.
        unpaid = earned if self.delayed else jnp.zeros_like(earned)
        state = CatchState(time, paddle, state.columns, unpaid)
        return state, next_step(
            self._observe(state),
            reward,
            last=last,
            discount=1 - last.astype(jnp.float32),
            events={"success": caught / self.runs, "catch": caught, "miss": missed},
        )

    def optimal_action(self, state: CatchState) -> Int[Array, ""]:
        """Follows the ball."""
        _, column = self.ball(state.time, state.columns)
        return jnp.sign(column - state.paddle) + 1

    def owed(self, state: CatchState) -> Float32[Array, ""]:
        """The balls that have landed and are not paid yet."""
        return state.unpaid

    def render(self, state: CatchState) -> np.ndarray:
        """The board with the paddle (blue), the falling ball (white) and the landed one.

        A landed ball is green if it was caught and red if it was missed. The score is yellow.
        """
        pixels = np.full((*self.observation_shape[:2], 3), 30, np.uint8)
        pixels[self.rows :][np.asarray(self._score(state))] = (255, 220, 60)
        row, column = (int(x) for x in self.ball(state.time, state.columns))
        landed, caught = row == self.rows - 1, column == int(state.paddle)
        pixels[self.rows - 1, int(state.paddle)] = (60, 110, 255)
        pixels[row, column] = (
            (255, 255, 255) if not landed else (60, 200, 90) if caught else (220, 60, 50)
        )
        return pixels

    def ball(
        self, time: Int[Array, ""], columns: Int[Array, "runs"]
    ) -> tuple[Int[Array, ""], Int[Array, ""]]:
        """Row and column of the ball at this time."""
        return time % self.rows, columns[time // self.rows]

    @property
    def _score_rows(self) -> int:
        return -(-self.runs // self.columns) if self.scoreboard else 0

    def _score(self, state: CatchState) -> Bool[Array, "score_rows columns"]:
        """As many cells as there are balls to be paid for."""
        cells = jnp.arange(self._score_rows * self.columns, dtype=jnp.float32)
        return jnp.reshape(cells < state.unpaid, (self._score_rows, self.columns))

    def _observe(self, state: CatchState) -> Float32[Array, "rows columns 1"]:
        row, column = self.ball(state.time, state.columns)
        cells = jnp.arange(self.rows * self.columns)
        paddle = (self.rows - 1) * self.columns + state.paddle
        lit = (cells == row * self.columns + column) | (cells == paddle)
        board = jnp.reshape(lit, (self.rows, self.columns))
        return jnp.concatenate([board, self._score(state)]).astype(jnp.float32)[..., None]


_EVENTS = {
    "success": "share of the balls caught",
    "catch": "a ball was caught",
    "miss": "a ball was missed",
}
TASKS = (
    Task(
        name="catch",
        description="catch falling balls, each pays at once",
        environment=Catch,
        random_return=2.857,
        optimal_return=20.0,
        events=_EVENTS,
        presets={
            "fast": {"steps": 500_000},
            "episodic": {"steps": 500_000},
            "paper": {"steps": 1_000_000},
        },
    ),
    Task(
        name="catch-delayed",
        description="catch falling balls, all pay at the end",
        environment=Catch,
        random_return=2.857,
        optimal_return=20.0,
        events=_EVENTS,
        defaults={"delayed": True},
        presets={
            "fast": {"steps": 300_000},
            # All reward arrives at the end, where it says nothing about the last action: beta 0.
            "episodic": {"steps": 600_000, "reward.beta": 0.0},
            "paper": {"steps": 5_000_000},
        },
    ),
    Task(
        name="catch-scoreboard",
        description="catch falling balls, all pay at the end and are counted in sight",
        environment=Catch,
        random_return=2.857,
        optimal_return=20.0,
        events=_EVENTS,
        defaults={"delayed": True, "scoreboard": True},
        presets={"fast": {"steps": 300_000}, "paper": {"steps": 5_000_000}},
    ),
)
