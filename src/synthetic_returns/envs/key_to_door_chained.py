"""Chained Key-to-Door: each door gives the key to the next one, and only the last door pays.

A ladder of difficulty beyond the paper: with ``keys`` keys the first decision that matters lies
``keys`` apple rooms before the one reward that depends on it.

Observation: as in Key-to-Door, ``[5, 5, 3]`` colours around the agent or the whole map. The key
  of the first room is yellow; behind the doors lie the red, the cyan and the orange one. The
  agent's own cell lights up in the key's colour on the one step on which a key is taken.
Actions: 0 up, 1 down, 2 left, 3 right; walls and locked doors stop the agent.
Reward: ``apple_reward`` for an apple, ``door_reward`` for the last door.
Termination: ``key_steps`` steps in the key room, then, for each key, ``distractor_steps`` in the
  apple room and ``door_steps`` in front of that key's door. Opening a door but the last takes the
  key behind it and changes nothing else: the door looks as before and the phase takes its full
  time, so that neither gives the key away. Opening the last door ends the episode.
"""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int

from synthetic_returns.envs import rooms
from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.checks import require, require_at_least
from synthetic_returns.types import Key, TimeStep, first_step, next_step

__all__ = ["KeyToDoorChained", "KeyToDoorChainedState"]

KEY_COLOURS = (rooms.YELLOW, rooms.RED, rooms.CYAN, rooms.ORANGE)


class KeyToDoorChainedState(eqx.Module):
    """The agent, the keys it has, and what lies in the rooms.

    Attributes:
      held: how many keys the agent has; they can only be taken in order.
      light: the colour of the key taken on the last step, 0 for none.
      apples: the time since when an apple lies on each cell.
    """

    time: Int[Array, ""]
    position: rooms.Position
    key_place: rooms.Position
    held: Int[Array, ""]
    light: Int[Array, ""]
    apples: rooms.Board


@dataclasses.dataclass(frozen=True)
class KeyToDoorChained(Environment[KeyToDoorChainedState]):
    """The chained Key-to-Door task.

    Attributes:
      keys: keys, and doors, in the chain: 2 to 4.
      key_steps: length of the first phase.
      distractor_steps: length of each phase in the apple room.
      door_steps: length of each phase in front of a door.
      apples: apples in the apple room, on random cells of 22.
      apple_reward: reward of each apple.
      apple_return_steps: after how many steps a taken apple is back.
      door_reward: reward of opening the last door.
      view: "crop", the 5 x 5 cells around the agent, or "full", the whole room.
    """

    keys: int = 2
    key_steps: int = 15
    distractor_steps: int = 30
    door_steps: int = 10
    apples: int = 10
    apple_reward: float = 1.0
    apple_return_steps: int = 20
    door_reward: float = 5.0
    view: rooms.View = "crop"

    def __post_init__(self) -> None:
        require_at_least(2, keys=self.keys)
        require(
            self.keys <= len(KEY_COLOURS),
            f"keys={self.keys} are too many: use 2 to {len(KEY_COLOURS)}.",
        )
        require_at_least(
            1,
            key_steps=self.key_steps,
            distractor_steps=self.distractor_steps,
            apple_return_steps=self.apple_return_steps,
        )
        require_at_least(2, door_steps=self.door_steps)
        rooms.check(self.apples, self.view)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The view in colour."""
        return rooms.view_shape(self.view)

    @property
    def num_actions(self) -> int:
        """Up, down, left and right."""
        return len(rooms.MOVES)

    @property
    def episode_steps(self) -> int:
        """The key room, then an apple room and a door room for each key."""
        return self.key_steps + self.keys * (self.distractor_steps + self.door_steps)

    @property
    def event_names(self) -> tuple[str, ...]:
        """``key_1`` and so on when taken, apples, and ``door``, the last one: ``success``."""
        return ("success", *(f"key_{i + 1}" for i in range(self.keys)), "apple", "door")

    def reset(self, key: Key) -> tuple[KeyToDoorChainedState, TimeStep]:
        """Places the agent, the first key and the apples."""
        start, keys, apples = rooms.furnish(key, 1, self.apples)
        state = KeyToDoorChainedState(
            time=jnp.int32(0),
            position=start,
            key_place=keys[0],
            held=jnp.int32(0),
            light=jnp.int32(0),
            apples=apples,
        )
        return state, first_step(self._observe(state), self.event_names)

    def step(
        self, state: KeyToDoorChainedState, action: Int[Array, ""]
    ) -> tuple[KeyToDoorChainedState, TimeStep]:
        """Walks, takes what lies there, and moves on to the next room."""
        room, door = self.place(state.time)
        time = state.time + 1
        position = rooms.walk(room, state.position, action, can_open=state.held >= door)

        # The key of the first room, or the one behind the door that is opened with the last key.
        opened = (room == rooms.DOOR_ROOM) & rooms.is_at(position, rooms.DOOR_CELL)
        found = (room == rooms.KEY_ROOM) & rooms.is_at(position, state.key_place)
        takes = (found | opened) & (state.held == door) & (door < self.keys)
        colour = jnp.asarray(KEY_COLOURS)[door]
        apples, ate = rooms.take_apple(state.apples, position, time, self.apple_return_steps)
        ate = ate & (room == rooms.APPLE_ROOM)
        wins = opened & (door == self.keys)
        last = wins | (time == self.episode_steps)

        next_room, _ = self.place(time)
        state = KeyToDoorChainedState(
            time=time,
            position=jnp.where(
                next_room == room, position, jnp.asarray(rooms.ENTRANCES)[next_room]
            ),
            key_place=state.key_place,
            held=state.held + takes.astype(jnp.int32),
            light=jnp.where(takes, colour, 0),
            apples=jnp.where(ate, apples, state.apples),
        )
        takes_each = [takes & (door == i) for i in range(self.keys)]
        happened = (wins, *takes_each, ate, wins)
        return state, next_step(
            self._observe(state),
            jnp.where(ate, self.apple_reward, 0.0) + jnp.where(wins, self.door_reward, 0.0),
            last=last,
            discount=1 - last.astype(jnp.float32),
            events={
                name: x.astype(jnp.float32)
                for name, x in zip(self.event_names, happened, strict=True)
            },
        )

    def render(self, state: KeyToDoorChainedState) -> np.ndarray:
        """The whole room in the colours of the observation, and the last key that was taken."""
        held = int(state.held)
        return rooms.to_pixels(self._draw(state), KEY_COLOURS[held - 1] if held else 0)

    def place(self, time: Int[Array, ""]) -> tuple[Int[Array, ""], Int[Array, ""]]:
        """The room at this time, and the number of the door that is next, 0 in the key room."""
        since = time - self.key_steps
        round_steps = self.distractor_steps + self.door_steps
        door = since // round_steps + 1
        # The frame after the last step still shows the last door.
        door = jnp.minimum(door, self.keys)
        in_door_room = since - (door - 1) * round_steps >= self.distractor_steps
        room = jnp.where(in_door_room, rooms.DOOR_ROOM, rooms.APPLE_ROOM)
        in_key_room = since < 0
        return jnp.where(in_key_room, rooms.KEY_ROOM, room), jnp.where(in_key_room, 0, door)

    def _draw(self, state: KeyToDoorChainedState) -> rooms.Board:
        return rooms.draw(
            self.place(state.time)[0],
            state.position,
            {KEY_COLOURS[0]: state.key_place},
            state.apples <= state.time,
            keys_visible=state.held == 0,
            light=state.light,
        )

    def _observe(self, state: KeyToDoorChainedState) -> Float32[Array, "rows columns 3"]:
        return rooms.look(self._draw(state), state.position, self.view)
