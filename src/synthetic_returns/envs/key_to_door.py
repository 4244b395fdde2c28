"""Key-to-Door: a key taken in the first room opens a door in the third, apples in between.

Observation: the ``[5, 5, 3]`` colours of the cells around the agent (or the whole map, ``[7, 11,
  3]``, with ``view="full"``): floor white, walls black, agent blue, keys yellow and red, apples
  green, door purple. On the one step on which a key is taken, the agent's own cell lights up in
  the key's colour; after that nothing shows whether the agent has a key.
Actions: 0 up, 1 down, 2 left, 3 right; walls and the locked door stop the agent.
Reward: ``apple_reward`` for an apple, ``door_reward`` for opening the door, which needs the key.
  Variants add ``door_step_reward`` on every step of the third phase that leaves the door closed,
  ``closed_reward`` on the last step if the door stayed closed, and a red key for which the door
  pays ``red_key_reward``; taking one key removes the other.
Termination: ``key_steps`` steps in the key room (two chambers, the agent in the lower and the key
  in the upper one), ``distractor_steps`` in the apple room, where an apple is back
  ``apple_return_steps`` after it was taken, and ``door_steps`` in the door room; the episode ends
  with them, or as soon as the door opens. The last move of a phase counts; the agent then finds
  itself at the entrance of the next room.
"""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int

from synthetic_returns.envs import rooms
from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.checks import require_at_least
from synthetic_returns.types import Key, TimeStep, first_step, next_step

__all__ = ["KeyToDoor", "KeyToDoorState"]


class KeyToDoorState(eqx.Module):
    """The agent, what it holds, and what lies in the rooms.

    Attributes:
      held: the colour of the key that the agent has, 0 for none.
      light: the colour of the key taken on the last step, 0 for none.
      apples: the time since when an apple lies on each cell.
    """

    time: Int[Array, ""]
    position: rooms.Position
    keys: Int[Array, "keys 2"]
    held: Int[Array, ""]
    light: Int[Array, ""]
    apples: rooms.Board


@dataclasses.dataclass(frozen=True)
class KeyToDoor(Environment[KeyToDoorState]):
    """The Key-to-Door task and, through its rewards, the paper's two variants.

    Attributes:
      key_steps: length of the first phase.
      distractor_steps: length of the second phase.
      door_steps: largest length of the third phase.
      apples: apples in the second phase, on random cells of 22.
      apple_reward: reward of each apple.
      apple_return_steps: after how many steps a taken apple is back.
      door_reward: reward of opening the door with the yellow key.
      red_key_reward: reward of opening the door with the red key; None for no red key.
      closed_reward: reward of the last step if the door stayed closed.
      door_step_reward: reward of every step of the third phase that leaves the door closed.
      view: "crop", the 5 x 5 cells around the agent, or "full", the whole room.
    """

    key_steps: int = 15
    distractor_steps: int = 60
    door_steps: int = 10
    apples: int = 10
    apple_reward: float = 1.0
    apple_return_steps: int = 20
    door_reward: float = 5.0
    red_key_reward: float | None = None
    closed_reward: float = 0.0
    door_step_reward: float = 0.0
    view: rooms.View = "crop"

    def __post_init__(self) -> None:
        require_at_least(1, key_steps=self.key_steps, apple_return_steps=self.apple_return_steps)
        require_at_least(0, distractor_steps=self.distractor_steps)
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
        """All three phases."""
        return self.key_steps + self.distractor_steps + self.door_steps

    @property
    def event_names(self) -> tuple[str, ...]:
        """Keys taken by colour, apples, door; ``success`` is opening it with the best key."""
        keys = ("key",) if self.red_key_reward is None else ("yellow_key", "red_key")
        return ("success", *keys, "apple", "door")

    def reset(self, key: Key) -> tuple[KeyToDoorState, TimeStep]:
        """Places the agent, the keys and the apples."""
        start, keys, apples = rooms.furnish(key, len(self._colours), self.apples)
        state = KeyToDoorState(
            time=jnp.int32(0),
            position=start,
            keys=keys,
            held=jnp.int32(0),
            light=jnp.int32(0),
            apples=apples,
        )
        return state, first_step(self._observe(state), self.event_names)

    def step(
        self, state: KeyToDoorState, action: Int[Array, ""]
    ) -> tuple[KeyToDoorState, TimeStep]:
        """Walks, takes what lies there, opens the door, and moves on to the next room."""
        room = self.room(state.time)
        time = state.time + 1
        position = rooms.walk(room, state.position, action, can_open=state.held > 0)

        light = jnp.int32(0)
        for colour, place in zip(self._colours, state.keys, strict=True):
            takes = (room == rooms.KEY_ROOM) & (state.held == 0) & rooms.is_at(position, place)
            light = jnp.where(takes, colour, light)
        apples, ate = rooms.take_apple(state.apples, position, time, self.apple_return_steps)
        ate = ate & (room == rooms.APPLE_ROOM)
        in_door_room = room == rooms.DOOR_ROOM
        opened = in_door_room & rooms.is_at(position, rooms.DOOR_CELL)
        last = opened | (time == self.episode_steps)

        has_red = state.held == rooms.RED
        door_reward = jnp.where(has_red, self.red_key_reward or 0.0, self.door_reward)
        reward = (
            jnp.where(ate, self.apple_reward, 0.0)
            + jnp.where(opened, door_reward, 0.0)
            + jnp.where(last & ~opened, self.closed_reward, 0.0)
            + jnp.where(in_door_room & ~opened, self.door_step_reward, 0.0)
        )

        next_room = self.room(time)
        state = KeyToDoorState(
            time=time,
            position=jnp.where(
                next_room == room, position, jnp.asarray(rooms.ENTRANCES)[next_room]
            ),
            keys=state.keys,
            held=jnp.where(light > 0, light, state.held),
            light=light,
            apples=jnp.where(ate, apples, state.apples),
        )
        takes_each = [light == colour for colour in self._colours]
        happened = (opened & ~has_red, *takes_each, ate, opened)
        return state, next_step(
            self._observe(state),
            reward,
            last=last,
            discount=1 - last.astype(jnp.float32),
            events={
                name: x.astype(jnp.float32)
                for name, x in zip(self.event_names, happened, strict=True)
            },
        )

    def render(self, state: KeyToDoorState) -> np.ndarray:
        """The whole room in the colours of the observation, and the key that the agent has."""
        return rooms.to_pixels(self._draw(state), int(state.held))

    @property
    def _colours(self) -> tuple[int, ...]:
        return (rooms.YELLOW,) if self.red_key_reward is None else (rooms.YELLOW, rooms.RED)

    def room(self, time: Int[Array, ""]) -> Int[Array, ""]:
        """The room at this time."""
        in_second = time >= self.key_steps
        in_third = time >= self.key_steps + self.distractor_steps
        return in_second.astype(jnp.int32) + in_third.astype(jnp.int32)

    def _draw(self, state: KeyToDoorState) -> rooms.Board:
        return rooms.draw(
            self.room(state.time),
            state.position,
            dict(zip(self._colours, state.keys, strict=True)),
            state.apples <= state.time,
            keys_visible=state.held == 0,
            light=state.light,
        )

    def _observe(self, state: KeyToDoorState) -> Float32[Array, "rows columns 3"]:
        return rooms.look(self._draw(state), state.position, self.view)
