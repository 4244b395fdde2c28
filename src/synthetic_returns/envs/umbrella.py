"""Umbrella: one decision at the start, noise in between, the consequence at the end.

The umbrella chain of bsuite, for measuring what the length of the delay and the number of
distracting observations cost. It is a task of credit, not of memory: forecast and umbrella stay
visible.

Observation: a vector of ``3 + distractors``: whether it will rain, whether the agent has the
  umbrella, the share of the walk that lies ahead, and coin flips that mean nothing.
Actions: 0 and 1; the first action of an episode leaves or takes the umbrella, later ones do
  nothing. Before it, whether the agent has the umbrella is random.
Reward: a coin flip of ``noise_reward`` or ``-noise_reward`` on every step but the last, which
  gives +1 if the umbrella was taken exactly if it rains, else -1.
Termination: after ``length`` steps.
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

__all__ = ["TASKS", "Umbrella", "UmbrellaState"]


class UmbrellaState(eqx.Module):
    """The clock, the forecast, the decision, and the key of the episode's coin flips."""

    time: Int[Array, ""]
    rain: Bool[Array, ""]
    umbrella: Bool[Array, ""]
    key: Key


@dataclasses.dataclass(frozen=True)
class Umbrella(Environment[UmbrellaState]):
    """The umbrella task.

    Attributes:
      length: steps between the decision and its consequence, both included.
      distractors: meaningless entries of the observation.
      noise_reward: size of the meaningless rewards.
    """

    length: int = 20
    distractors: int = 20
    noise_reward: float = 1.0

    truncates: ClassVar = False
    event_marks: ClassVar = {"umbrella": EventMark("triangle", "blue")}

    def __post_init__(self) -> None:
        require_at_least(1, length=self.length)
        require_at_least(0, distractors=self.distractors)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Forecast, umbrella, way ahead, distractors."""
        return (3 + self.distractors,)

    @property
    def num_actions(self) -> int:
        """Leave or take the umbrella."""
        return 2

    @property
    def max_episode_steps(self) -> int:
        """The length of the walk."""
        return self.length

    @property
    def event_names(self) -> tuple[str, ...]:
        """``umbrella`` when it is taken; ``success`` when the decision turns out right."""
        return ("success", "umbrella")

    def reset(self, key: Key) -> tuple[UmbrellaState, TimeStep]:
        """Draws the forecast."""
        start_key, noise_key = jax.random.split(key)
        rain, umbrella = jax.random.bernoulli(start_key, shape=(2,))
        state = UmbrellaState(jnp.int32(0), rain, umbrella, noise_key)
        flips, _ = self._flip_coins(state)
        return state, first_step(self._observe(state, flips), self.event_names)

    def step(self, state: UmbrellaState, action: Int[Array, ""]) -> tuple[UmbrellaState, TimeStep]:
        """Decides on the first step, walks on the others."""
        decides = state.time == 0
        umbrella = jnp.where(decides, action == 1, state.umbrella)
        state = UmbrellaState(state.time + 1, state.rain, umbrella, state.key)
        flips, noise = self._flip_coins(state)
        last = state.time == self.length
        right = umbrella == state.rain
        return state, next_step(
            self._observe(state, flips),
            jnp.where(last, self._consequence(state), noise),
            last=last,
            discount=1 - last.astype(jnp.float32),
            events={
                "success": (last & right).astype(jnp.float32),
                "umbrella": (decides & umbrella).astype(jnp.float32),
            },
        )

    def optimal_action(self, state: UmbrellaState) -> Int[Array, ""]:
        """Believes the forecast."""
        return state.rain.astype(jnp.int32)

    def owed(self, state: UmbrellaState) -> Float32[Array, ""]:
        """The consequence, once the decision is made."""
        return jnp.where(state.time > 0, self._consequence(state), 0.0)

    def render(self, state: UmbrellaState) -> np.ndarray:
        """Above, the sky: blue for rain, yellow for sun; in the middle the walk so far.

        Below it the agent, green if it carries the umbrella as it should, else red.
        """
        pixels = np.full((3, self.length + 1, 3), 30, np.uint8)
        pixels[0] = (60, 110, 255) if bool(state.rain) else (255, 220, 60)
        pixels[1, : int(state.time) + 1] = 120
        right = bool(state.umbrella) == bool(state.rain)
        pixels[2, int(state.time)] = (60, 200, 90) if right else (220, 60, 50)
        return pixels

    def _consequence(self, state: UmbrellaState) -> Float32[Array, ""]:
        return jnp.where(state.umbrella == state.rain, 1.0, -1.0)

    def _flip_coins(
        self, state: UmbrellaState
    ) -> tuple[Float32[Array, "distractors"], Float32[Array, ""]]:
        """The distractors and the noise reward of this point in time."""
        key = jax.random.fold_in(state.key, state.time)
        flips = jax.random.bernoulli(key, shape=(self.distractors + 1,)).astype(jnp.float32)
        return flips[1:], self.noise_reward * (2 * flips[0] - 1)

    def _observe(
        self, state: UmbrellaState, flips: Float32[Array, "distractors"]
    ) -> Float32[Array, "features"]:
        ahead = (self.length - state.time).astype(jnp.float32) / self.length
        known = jnp.stack(
            [state.rain.astype(jnp.float32), state.umbrella.astype(jnp.float32), ahead]
        )
        return jnp.concatenate([known, flips])


TASKS = (
    Task(
        name="umbrella",
        description="one decision, random rewards and observations, then its consequence",
        environment=Umbrella,
        random_return=0.0,
        optimal_return=1.0,
        events={"success": "the decision was right", "umbrella": "the umbrella was taken"},
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
