"""Chain: a trigger state decides about a reward that no Bellman backup can connect to it.

Observation: a one-hot code of ``length + 1``: the position on the chain or, last, the outcome
  state, which looks the same whether it will pay or not.
Actions: 0 moves left, 1 moves right; at the ends of the chain the agent stays in place.
Reward: +1 for leaving the outcome state if the trigger, ``trigger`` cells right of the centre,
  was visited in this episode; everything else gives 0.
Termination: the agent starts in the centre and makes ``free_moves`` moves, any of which may
  visit the trigger. The step after them jumps to the outcome state whatever the action, and its
  discount is 0: the infinite delay of the paper. The step after that leaves the outcome state
  and ends the episode, still showing the code of the outcome. An episode of the default task
  has 8 + 2 steps, so 10 states with a successor.
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
from synthetic_returns.envs.spec import EventMark, FewStates
from synthetic_returns.envs.task import Task
from synthetic_returns.types import Key, TimeStep, first_step, next_step

__all__ = ["TASKS", "Chain", "ChainState"]


class ChainState(eqx.Module):
    """Where the agent is and what it has visited."""

    time: Int[Array, ""]
    position: Int[Array, ""]
    triggered: Bool[Array, ""]


@dataclasses.dataclass(frozen=True)
class Chain(Environment[ChainState]):
    """The Chain task.

    Attributes:
      length: cells of the chain, an odd number, so that there is a centre.
      trigger: how far to the right of the centre the trigger lies.
      free_moves: moves before the jump. A random policy visits the default trigger in 0.78 % of
        episodes with 8 moves and in 2.15 % with 10.
    """

    length: int = 17
    trigger: int = 7
    free_moves: int = 8

    truncates: ClassVar = False
    event_marks: ClassVar = {"trigger": EventMark("diamond", "gold")}

    def __post_init__(self) -> None:
        require_at_least(3, length=self.length)
        require_at_least(1, trigger=self.trigger, free_moves=self.free_moves)
        require(
            self.length % 2 == 1,
            f"length={self.length} has no centre to start in: use an odd number of cells.",
        )
        require(
            self.trigger <= self.length // 2,
            f"trigger={self.trigger} lies outside the chain: with length={self.length} it must be "
            f"1 to {self.length // 2} cells right of the centre.",
        )
        require(
            self.free_moves >= self.trigger,
            f"free_moves={self.free_moves} can never reach the trigger {self.trigger} cells away: "
            f"use at least {self.trigger}.",
        )

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """One code for each cell and one for the outcome."""
        return (self.length + 1,)

    @property
    def num_actions(self) -> int:
        """Left and right."""
        return 2

    @property
    def max_episode_steps(self) -> int:
        """The free moves, the jump and the step that leaves the outcome state."""
        return self.free_moves + 2

    @property
    def event_names(self) -> tuple[str, ...]:
        """``trigger`` on the first visit; ``success`` when it pays."""
        return ("success", "trigger")

    @property
    def few_states(self) -> FewStates:
        """A one-hot code for each cell, named by its distance from the centre, and the outcome."""
        centre = self.length // 2
        cells = (f"{cell - centre:+d}" if cell != centre else "0" for cell in range(self.length))
        return FewStates(
            labels=(*cells, "end"),
            observations=np.eye(self.length + 1, dtype=np.float32),
            decisive=centre + self.trigger,
        )

    def reset(self, key: Key) -> tuple[ChainState, TimeStep]:
        """Puts the agent in the centre; nothing is random."""
        del key
        state = ChainState(jnp.int32(0), jnp.int32(self.length // 2), jnp.bool_(False))
        return state, first_step(self._observe(state), self.event_names)

    def step(self, state: ChainState, action: Int[Array, ""]) -> tuple[ChainState, TimeStep]:
        """Moves along the chain, jumps to the outcome, or leaves it."""
        time = state.time + 1
        moved = jnp.clip(state.position + 2 * action - 1, 0, self.length - 1)
        position = jnp.where(time <= self.free_moves, moved, state.position)
        visit = (position == self.length // 2 + self.trigger) & ~state.triggered
        jumping = time == self.free_moves + 1
        leaving = time == self.free_moves + 2
        reward = (leaving & state.triggered).astype(jnp.float32)
        state = ChainState(time, position, state.triggered | visit)
        return state, next_step(
            self._observe(state),
            reward,
            last=leaving,
            discount=1 - (jumping | leaving).astype(jnp.float32),
            events={"success": reward, "trigger": visit.astype(jnp.float32)},
        )

    def optimal_action(self, state: ChainState) -> Int[Array, ""]:
        """Walks to the trigger."""
        del state
        return jnp.int32(1)

    def owed(self, state: ChainState) -> Float32[Array, ""]:
        """What the outcome will pay."""
        return state.triggered.astype(jnp.float32)

    def render(self, state: ChainState) -> np.ndarray:
        """The chain as a row with the agent (blue) and the trigger (green).

        Below it, the outcome: grey while it is hidden, then green if it pays and red if not.
        """
        floor, agent, trigger, lost = (30, 30, 30), (60, 110, 255), (60, 200, 90), (220, 60, 50)
        pixels = np.full((3, self.length, 3), 120, np.uint8)
        pixels[1] = floor
        pixels[1, self.length // 2 + self.trigger] = trigger
        if int(state.time) <= self.free_moves:
            pixels[1, int(state.position)] = agent
        else:
            pixels[2, self.length // 2] = trigger if bool(state.triggered) else lost
        return pixels

    def _observe(self, state: ChainState) -> Float32[Array, "codes"]:
        code = jnp.where(state.time <= self.free_moves, state.position, self.length)
        return jax.nn.one_hot(code, self.length + 1, dtype=jnp.float32)


TASKS = (
    Task(
        name="chain",
        description="visit a trigger state; it pays after an infinite delay",
        environment=Chain,
        random_return=0.0078,
        optimal_return=1.0,
        events={"success": "the outcome paid", "trigger": "the trigger was visited"},
        presets={
            "fast": {"steps": 60_000},
            # Few of the first episodes are won, and all of them are short: learn more from each.
            "episodic": {"steps": 200_000, "credit.replay.updates_per_episode": 2.0},
            # The paper: a single layer of 128 units.
            "paper": {
                "steps": 1_000_000,
                "agent.torso.channels": (),
                "agent.torso.sizes": (128,),
            },
            "r2d2": {"steps": 80_000},
        },
    ),
)
