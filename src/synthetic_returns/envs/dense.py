"""Dense: a pointer follows a target, every step earns a little, and all of it is paid at the end.

Observation: a vector of 3: the pointer and the target, as shares of the way from the left end to
  the right one, and where the target goes next: 0 left, 0.5 nowhere, 1 right.
Actions: 0 moves the pointer left, 1 lets it stay, 2 moves it right, while the target moves.
Reward: 0 until the last step, which pays for all steps: each earns ``step_reward`` if the pointer
  is on the target after it, less the farther it is away, and nothing at ``reach`` cells or more.
Termination: after ``length`` steps.

Pointer and target start in the centre. The target keeps its direction for ``stretch`` steps, then
takes a random one; at the ends it turns back.
"""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int

from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.checks import require, require_at_least
from synthetic_returns.envs.task import Task
from synthetic_returns.types import Key, TimeStep, first_step, next_step

__all__ = ["TASKS", "Dense", "DenseState"]


class DenseState(eqx.Module):
    """The clock, the pointer, the target and all its turns, and what was earned so far."""

    time: Int[Array, ""]
    pointer: Int[Array, ""]
    target: Int[Array, ""]
    turns: Int[Array, "stretches"]
    unpaid: Float32[Array, ""]


@dataclasses.dataclass(frozen=True)
class Dense(Environment[DenseState]):
    """The dense task.

    Attributes:
      length: steps of an episode.
      cells: where pointer and target can be.
      reach: the distance from which on a step earns nothing.
      stretch: steps before the target may change its direction.
      step_reward: the most that one step earns.
    """

    length: int = 80
    cells: int = 11
    reach: int = 4
    stretch: int = 4
    step_reward: float = 0.25

    truncates: ClassVar = False

    def __post_init__(self) -> None:
        require_at_least(1, length=self.length, reach=self.reach, stretch=self.stretch)
        require_at_least(2, cells=self.cells)
        require(
            self.step_reward > 0,
            f"step_reward={self.step_reward} is not allowed: use a number above 0.",
        )

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Pointer, target and direction."""
        return (3,)

    @property
    def num_actions(self) -> int:
        """Left, stay and right."""
        return 3

    @property
    def max_episode_steps(self) -> int:
        """All episodes have the same length."""
        return self.length

    @property
    def event_names(self) -> tuple[str, ...]:
        """``success``, on the last step, is the share of what can be earned."""
        return ("success",)

    def reset(self, key: Key) -> tuple[DenseState, TimeStep]:
        """Draws all turns of the target."""
        turns = jax.random.randint(key, (-(-self.length // self.stretch),), -1, 2)
        centre = jnp.int32(self.cells // 2)
        state = DenseState(jnp.int32(0), centre, centre, turns, jnp.float32(0))
        return state, first_step(self._observe(state), self.event_names)

    def step(self, state: DenseState, action: Int[Array, ""]) -> tuple[DenseState, TimeStep]:
        """Moves target and pointer, and notes what the step has earned."""
        time = state.time + 1
        target = state.target + self.direction(state)
        pointer = jnp.clip(state.pointer + action - 1, 0, self.cells - 1)
        share = jnp.maximum(0.0, 1 - jnp.abs(pointer - target) / self.reach)
        earned = state.unpaid + self.step_reward * share
        last = time == self.length
        reward = jnp.where(last, earned, 0.0)
        state = DenseState(time, pointer, target, state.turns, earned)
        return state, next_step(
            self._observe(state),
            reward,
            last=last,
            discount=1 - last.astype(jnp.float32),
            events={"success": reward / (self.length * self.step_reward)},
        )

    def optimal_action(self, state: DenseState) -> Int[Array, ""]:
        """Goes to where the target will be."""
        goal = state.target + self.direction(state)
        return jnp.sign(goal - state.pointer) + 1

    def owed(self, state: DenseState) -> Float32[Array, ""]:
        """What the steps so far have earned."""
        return state.unpaid

    def render(self, state: DenseState) -> np.ndarray:
        """Above the target (yellow), below the pointer (blue)."""
        pixels = np.full((2, self.cells, 3), 30, np.uint8)
        pixels[0, int(state.target)] = (255, 220, 60)
        pixels[1, int(state.pointer)] = (60, 110, 255)
        return pixels

    def direction(self, state: DenseState) -> Int[Array, ""]:
        """The next move of the target: -1, 0 or 1."""
        turn = state.turns[state.time // self.stretch]
        inside = (state.target + turn >= 0) & (state.target + turn < self.cells)
        return jnp.where(inside, turn, -turn)

    def _observe(self, state: DenseState) -> Float32[Array, "3"]:
        places = jnp.stack([state.pointer, state.target]) / (self.cells - 1)
        return jnp.append(places, (self.direction(state) + 1) / 2)


TASKS = (
    Task(
        name="dense",
        description="follow a target, every step earns a little, all is paid at the end",
        environment=Dense,
        random_return=6.65,
        optimal_return=20.0,
        events={"success": "share of what can be earned"},
        presets={
            "fast": {"steps": 500_000},
            "paper": {
                "steps": 1_000_000,
                "agent.torso.channels": (),
                "agent.torso.sizes": (128,),
            },
        },
    ),
)
