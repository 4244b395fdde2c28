"""Balance: keep a pole up in the wind; an episode ends with its fall, which pays for all steps.

Observation: a vector of 3: how far the pole leans, how fast it does so, and the coming gust, each
  from 0 for left over 0.5 for none to 1 for right.
Actions: 0 pushes the pole to the left, 1 does nothing, 2 pushes it to the right.
Reward: 0 until the last step, which pays ``step_reward`` for every step after which the pole stood.
Termination: when the pole leans farther than ``limit``, or after ``length`` steps.

Push and gust add to the speed, which is at most ``top_speed``, and the speed to the lean. Pole and
air are at rest at the start; a gust blows to the left, to the right or not at all, equally often.
"""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int

from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.checks import require_at_least
from synthetic_returns.envs.spec import EventMark
from synthetic_returns.envs.task import Task
from synthetic_returns.types import Key, TimeStep, first_step, next_step

__all__ = ["TASKS", "Balance", "BalanceState"]


class BalanceState(eqx.Module):
    """The clock, the pole, and all gusts of the episode."""

    time: Int[Array, ""]
    lean: Int[Array, ""]
    speed: Int[Array, ""]
    gusts: Int[Array, "steps"]


@dataclasses.dataclass(frozen=True)
class Balance(Environment[BalanceState]):
    """The balance task.

    Attributes:
      length: the most steps of an episode.
      limit: how far the pole may lean.
      top_speed: how far it falls in one step at most.
      step_reward: what every step is worth after which the pole stands.
    """

    length: int = 100
    limit: int = 12
    top_speed: int = 2
    step_reward: float = 0.2

    truncates: ClassVar = False
    event_marks: ClassVar = {"fall": EventMark("cross", "red")}

    def __post_init__(self) -> None:
        require_at_least(1, length=self.length, limit=self.limit, top_speed=self.top_speed)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Lean, speed and gust."""
        return (3,)

    @property
    def num_actions(self) -> int:
        """Left, nothing and right."""
        return 3

    @property
    def max_episode_steps(self) -> int:
        """An episode without a fall."""
        return self.length

    @property
    def event_names(self) -> tuple[str, ...]:
        """``fall``; ``success`` is the share of the steps that the pole stood."""
        return ("success", "fall")

    def reset(self, key: Key) -> tuple[BalanceState, TimeStep]:
        """Draws all gusts."""
        gusts = jax.random.randint(key, (self.length,), -1, 2)
        state = BalanceState(jnp.int32(0), jnp.int32(0), jnp.int32(0), gusts)
        return state, first_step(self._observe(state), self.event_names)

    def step(self, state: BalanceState, action: Int[Array, ""]) -> tuple[BalanceState, TimeStep]:
        """Pushes, and lets the wind blow."""
        time = state.time + 1
        pushed = state.speed + action - 1 + self.gust(state)
        speed = jnp.clip(pushed, -self.top_speed, self.top_speed)
        lean = state.lean + speed
        falls = jnp.abs(lean) > self.limit
        last = falls | (time == self.length)
        steps_stood = jnp.where(falls, state.time, time).astype(jnp.float32)
        state = BalanceState(time, lean, speed, state.gusts)
        return state, next_step(
            self._observe(state),
            jnp.where(last, self.step_reward * steps_stood, 0.0),
            last=last,
            discount=1 - last.astype(jnp.float32),
            events={
                "success": jnp.where(last, steps_stood / self.length, 0.0),
                "fall": falls.astype(jnp.float32),
            },
        )

    def optimal_action(self, state: BalanceState) -> Int[Array, ""]:
        """Makes the pole go upright, slowly."""
        wanted = -jnp.sign(state.lean)
        return jnp.clip(wanted - state.speed - self.gust(state), -1, 1) + 1

    def owed(self, state: BalanceState) -> Float32[Array, ""]:
        """The steps so far: the pole stood after all of them."""
        return self.step_reward * state.time.astype(jnp.float32)

    def render(self, state: BalanceState) -> np.ndarray:
        """The top of the pole (blue, red if it has fallen) over its foot (grey).

        Below it, the coming gust (yellow) beside the foot.
        """
        pixels = np.full((3, 2 * self.limit + 1, 3), 30, np.uint8)
        lean = int(state.lean)
        fallen = abs(lean) > self.limit
        top = int(np.clip(lean, -self.limit, self.limit)) + self.limit
        pixels[0, top] = (220, 60, 50) if fallen else (60, 110, 255)
        pixels[1, self.limit] = 120
        pixels[2, self.limit + int(self.gust(state))] = (255, 220, 60)
        return pixels

    def gust(self, state: BalanceState) -> Int[Array, ""]:
        """How the wind blows in the next step: -1, 0 or 1."""
        return state.gusts[state.time]

    def _observe(self, state: BalanceState) -> Float32[Array, "3"]:
        shown = jnp.stack(
            [
                jnp.clip(state.lean / self.limit, -1, 1),
                state.speed / self.top_speed,
                self.gust(state).astype(jnp.float32),
            ]
        )
        return (shown + 1) / 2


TASKS = (
    Task(
        name="balance",
        description="keep a pole up; the steps until its fall are paid at the end",
        environment=Balance,
        random_return=3.76,
        optimal_return=20.0,
        events={"success": "share of the steps that the pole stood", "fall": "the pole fell"},
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
