"""Linear Key-to-Door: a corridor that is walked once, small enough to be solved exactly.

After the task of the same name in COCOA (Meulemans et al. 2023), for comparing credit with exact
advantages. It is not in the list of tasks: it takes no exploration to speak of.

Observation: a one-hot code of the cell, then whether the agent has the key, then whether the
  treasure lies in this cell.
Actions: 0 takes a key, 1 picks an apple on the left, 2 one on the right, 3 opens a door. The agent
  goes on by one cell whatever it does.
Reward: ``apple`` for picking the apple of a cell on its side, ``treasure`` for leaving the last
  cell if the door was opened.
Termination: after the last cell. The key lies in the first cell, apples in those between, on
  alternating sides, the door in the last but one; it opens to those who have the key.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int

from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.checks import require_at_least
from synthetic_returns.types import Key, TimeStep, first_step, next_step

__all__ = ["LinearKeyToDoor", "LinearState"]

TAKE_KEY, PICK_LEFT, PICK_RIGHT, OPEN = range(4)


class LinearState(eqx.Module):
    """Where the agent is, whether it has the key, and whether it opened the door."""

    cell: Int[Array, ""]
    key: Bool[Array, ""]
    opened: Bool[Array, ""]


@dataclasses.dataclass(frozen=True)
class LinearKeyToDoor(Environment[LinearState]):
    """The linear Key-to-Door task.

    Attributes:
      length: cells of the corridor.
      apple: reward of an apple.
      treasure: reward behind the door.
    """

    length: int = 5
    apple: float = 0.2
    treasure: float = 1.0

    def __post_init__(self) -> None:
        require_at_least(3, length=self.length)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The cell, the key, the treasure."""
        return (self.length + 2,)

    @property
    def num_actions(self) -> int:
        """Take the key, pick left, pick right, open."""
        return 4

    @property
    def max_episode_steps(self) -> int:
        """Each cell is left once."""
        return self.length

    @property
    def event_names(self) -> tuple[str, ...]:
        """``success`` when the treasure is found."""
        return ("success",)

    def reset(self, key: Key) -> tuple[LinearState, TimeStep]:
        """Puts the agent in the first cell; nothing is random."""
        del key
        state = LinearState(jnp.int32(0), jnp.bool_(False), jnp.bool_(False))
        return state, first_step(self._observe(state), self.event_names)

    def step(self, state: LinearState, action: Int[Array, ""]) -> tuple[LinearState, TimeStep]:
        """Acts in the cell, and goes on to the next."""
        cell = state.cell
        between = (cell > 0) & (cell < self.length - 2)
        picked = between & (action == self._side(cell))
        found = (cell == self.length - 1) & state.opened
        after = LinearState(
            cell + 1,
            state.key | ((cell == 0) & (action == TAKE_KEY)),
            state.opened | ((cell == self.length - 2) & state.key & (action == OPEN)),
        )
        last = after.cell == self.length
        return after, next_step(
            self._observe(after),
            jnp.where(picked, jnp.float32(self.apple), jnp.float32(0))
            + jnp.where(found, jnp.float32(self.treasure), jnp.float32(0)),
            last=last,
            discount=1 - last.astype(jnp.float32),
            events={"success": found.astype(jnp.float32)},
        )

    def optimal_action(self, state: LinearState) -> Int[Array, ""]:
        """Takes the key, all apples, and opens the door."""
        action = jnp.where(state.cell == 0, TAKE_KEY, self._side(state.cell))
        return jnp.where(state.cell == self.length - 2, OPEN, action).astype(jnp.int32)

    def owed(self, state: LinearState) -> Float32[Array, ""]:
        """The treasure, from the key on, unless the door was passed without opening it."""
        ahead = state.key & (state.cell < self.length - 1)
        return jnp.where(state.opened | ahead, jnp.float32(self.treasure), jnp.float32(0))

    def render(self, state: LinearState) -> np.ndarray:
        """The corridor with the key (gold), apples (red), the door (green) and the agent (blue)."""
        pixels = np.full((1, self.length, 3), 30, np.uint8)
        pixels[0, 1 : self.length - 2] = (220, 60, 50)
        pixels[0, self.length - 2] = (60, 200, 90)
        if not bool(state.key):
            pixels[0, 0] = (255, 220, 60)
        pixels[0, min(int(state.cell), self.length - 1)] = (60, 110, 255)
        return pixels

    def _side(self, cell: Int[Array, ""]) -> Int[Array, ""]:
        return jnp.where(cell % 2 == 1, PICK_LEFT, PICK_RIGHT)

    def _observe(self, state: LinearState) -> Float32[Array, "codes"]:
        treasure = state.opened & (state.cell == self.length - 1)
        shown = jnp.stack([state.key, treasure]).astype(jnp.float32)
        return jnp.concatenate([jax.nn.one_hot(state.cell, self.length), shown])
