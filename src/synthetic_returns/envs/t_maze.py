"""T-maze: a cue that has to be looked for, a corridor, and a choice that needs the cue.

The active T-maze of Ni et al. 2023. Looking for the cue takes a step away from the goal, and is of
use only to an agent that remembers it to the end of the corridor: a task of memory and of credit.

::

                          up
    cue start ... ... junction
                         down

Observation: a vector of 5: the cue, up or down, on the first visit of the place that shows it;
  whether the agent is at the junction or beyond it; and whether it is at the upper or the lower
  end. All places of the corridor look the same, and like that of the cue once it was seen.
Actions: 0 moves right, 1 up, 2 left, 3 down; into a wall the agent stays in place.
Reward: +1 for being at the end that the cue has named when the time is over. Every earlier step
  that leaves the agent further back than an agent that has seen the cue and lost no time costs
  ``1 / corridor``.
Termination: after ``corridor + 3`` steps: to the cue, through the corridor, and to one end.
"""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int

from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.checks import require_at_least
from synthetic_returns.envs.spec import EventMark
from synthetic_returns.envs.task import Task
from synthetic_returns.types import Key, TimeStep, first_step, next_step

__all__ = ["TASKS", "TMaze", "TMazeState"]

START = 1  # the cue is at 0
RIGHT, UP, LEFT, DOWN = range(4)
MOVES = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], np.int32)
CUE_WORTH = 0.5  # who has not seen the cue is right half of the time


class TMazeState(eqx.Module):
    """Where the agent is, where it should go, and whether it has seen where."""

    time: Int[Array, ""]
    x: Int[Array, ""]
    y: Int[Array, ""]
    goal: Int[Array, ""]
    seen: Bool[Array, ""]


@dataclasses.dataclass(frozen=True)
class TMaze(Environment[TMazeState]):
    """The T-maze.

    Attributes:
      corridor: cells from the start to the junction.
    """

    corridor: int = 20

    truncates: ClassVar = False
    event_marks: ClassVar = {"cue": EventMark("diamond", "gold")}

    def __post_init__(self) -> None:
        require_at_least(1, corridor=self.corridor)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Two cues, the junction, two ends."""
        return (5,)

    @property
    def num_actions(self) -> int:
        """Right, up, left, down."""
        return 4

    @property
    def max_episode_steps(self) -> int:
        """To the cue and back to the start, through the corridor, and to one end."""
        return self.corridor + 3

    @property
    def event_names(self) -> tuple[str, ...]:
        """``cue`` when it is seen; ``success`` at the right end."""
        return ("success", "cue")

    def reset(self, key: Key) -> tuple[TMazeState, TimeStep]:
        """Draws the goal; the agent starts a step beside the cue."""
        goal = 2 * jax.random.bernoulli(key).astype(jnp.int32) - 1
        state = TMazeState(jnp.int32(0), jnp.int32(START), jnp.int32(0), goal, jnp.bool_(False))
        observation = self._observe(state, jnp.bool_(False))
        return state, first_step(observation, self.event_names)

    def step(self, state: TMazeState, action: Int[Array, ""]) -> tuple[TMazeState, TimeStep]:
        """Moves, if there is no wall."""
        move = jnp.asarray(MOVES)[action]
        x, y = state.x + move[0], state.y + move[1]
        in_corridor = (y == 0) & (x >= 0) & (x <= self._junction)
        at_end = (x == self._junction) & (jnp.abs(y) == 1)
        free = in_corridor | at_end
        x, y = jnp.where(free, x, state.x), jnp.where(free, y, state.y)
        cue = (x == 0) & ~state.seen
        state = TMazeState(state.time + 1, x, y, state.goal, state.seen | cue)
        last = state.time == self.max_episode_steps
        right = last & (y == state.goal)
        behind = x < state.time - START
        reward = jnp.where(last, right.astype(jnp.float32), 0.0)
        reward -= jnp.where(behind & ~last, 1 / self.corridor, 0.0)
        return state, next_step(
            self._observe(state, cue),
            reward,
            last=last,
            discount=1 - last.astype(jnp.float32),
            events={"success": right.astype(jnp.float32), "cue": cue.astype(jnp.float32)},
        )

    def optimal_action(self, state: TMazeState) -> Int[Array, ""]:
        """Looks at the cue, walks to the junction, and goes where the cue says."""
        choice = jnp.where(state.goal == 1, UP, DOWN)  # at the goal, into the wall behind it
        walk = jnp.where(state.x < self._junction, RIGHT, choice)
        return jnp.where(state.seen, walk, LEFT).astype(jnp.int32)

    def owed(self, state: TMazeState) -> Float32[Array, ""]:
        """What the cue is worth, as long as the goal can still be reached in time."""
        to_junction = self._junction - state.x
        distance = to_junction + jnp.abs(state.goal - state.y)
        in_time = distance <= self.max_episode_steps - state.time
        return jnp.where(state.seen & in_time, CUE_WORTH, 0.0)

    def render(self, state: TMazeState) -> np.ndarray:
        """The maze with the agent (blue), the right end (green) and the place of the cue.

        That is yellow until it was seen, then dark.
        """
        pixels = np.full((3, self._junction + 1, 3), 120, np.uint8)
        pixels[1] = pixels[:, -1] = 30
        pixels[1, 0] = (90, 80, 30) if bool(state.seen) else (255, 220, 60)
        pixels[1 - int(state.goal), -1] = (60, 200, 90)
        pixels[1 - int(state.y), int(state.x)] = (60, 110, 255)
        return pixels

    @property
    def _junction(self) -> int:
        return START + self.corridor

    def _observe(self, state: TMazeState, cue: Bool[Array, ""]) -> Float32[Array, "5"]:
        seen = [
            cue & (state.goal == 1),
            cue & (state.goal == -1),
            state.x == self._junction,
            state.y == 1,
            state.y == -1,
        ]
        return jnp.stack(seen).astype(jnp.float32)


TASKS = (
    Task(
        name="t-maze",
        description="look for a cue, remember it through a corridor, choose an end",
        environment=TMaze,
        random_return=-0.985,
        optimal_return=1.0,
        events={"success": "the right end was reached", "cue": "the cue was seen"},
        presets={
            # A memory, and unrolls as long as an episode for it to learn from.
            "fast": {
                "steps": 800_000,
                "agent.clock": False,
                "agent.lstm_size": 64,
                "agent.discount": 0.99,
                "engine.unroll_length": 24,
            },
            "paper": {
                "steps": 1_000_000,
                "agent.torso.channels": (),
                "agent.torso.sizes": (128,),
                "engine.unroll_length": 24,
            },
        },
    ),
)
