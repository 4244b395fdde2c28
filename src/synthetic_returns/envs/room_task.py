"""What the tasks with keys, apples and doors have in common: their phases, and moving in them."""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int

from synthetic_returns.envs import rooms
from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.checks import require_at_least
from synthetic_returns.envs.spec import EventMark, Phases
from synthetic_returns.types import Key, TimeStep, first_step, next_step

__all__ = ["RoomState", "RoomTask"]


class RoomState(eqx.Module):
    """The agent, what it holds, and what lies in the rooms.

    Attributes:
      keys: where the keys of the first room lie.
      held: what the agent has: the colour of its newest key, 0 for none, or which keys.
      light: the colour of the key taken on the last step, if that shows; 0 for none.
      apples: the time since when an apple lies on each cell.
    """

    time: Int[Array, ""]
    position: rooms.Position
    keys: Int[Array, "keys 2"]
    held: Int[Array, ""] | Bool[Array, "keys"]
    light: Int[Array, ""]
    apples: rooms.Board


@dataclasses.dataclass(frozen=True)
class RoomTask(Environment[RoomState]):
    """A key room, then an apple room and a door room for each door.

    A task says how many doors there are, what ``held`` is, and what a step takes and opens.

    Attributes:
      key_steps: length of the first phase.
      distractor_steps: length of each phase in the apple room.
      door_steps: length of each phase in front of a door, the largest one for the last.
      apples: apples in the apple room, on random cells of 22.
      apple_reward: reward of each apple.
      apple_return_steps: after how many steps a taken apple is back.
      door_reward: reward of opening a door that pays.
      view: "crop", the 5 x 5 cells around the agent, or "full", the whole room.
    """

    key_steps: int = 15
    distractor_steps: int = 60
    door_steps: int = 10
    apples: int = 10
    apple_reward: float = 1.0
    apple_return_steps: int = 20
    door_reward: float = 5.0
    view: rooms.View = "crop"

    truncates: ClassVar = False
    event_marks: ClassVar = {
        "yellow_key": EventMark("diamond", "gold"),
        "red_key": EventMark("diamond", "red"),
        "apple": EventMark("circle", "green"),
        "door": EventMark("square", "purple"),
    }

    def __post_init__(self) -> None:
        require_at_least(1, key_steps=self.key_steps, apple_return_steps=self.apple_return_steps)
        # Without apples between them, the agent would never leave one door for the next.
        require_at_least(0 if self.doors == 1 else 1, distractor_steps=self.distractor_steps)
        require_at_least(2, door_steps=self.door_steps)
        rooms.check(self.apples, self.view)

    @property
    @abc.abstractmethod
    def doors(self) -> int:
        """How many doors there are."""

    @property
    @abc.abstractmethod
    def first_colours(self) -> tuple[int, ...]:
        """The colours of the keys of the first room."""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The view in colour."""
        return rooms.view_shape(self.view)

    @property
    def num_actions(self) -> int:
        """Up, down, left and right."""
        return len(rooms.MOVES)

    @property
    def max_episode_steps(self) -> int:
        """The key room, then an apple room and a door room for each door."""
        return self.phase_end(self.doors)

    @property
    def phases(self) -> Phases:
        """The rooms."""
        found: list[tuple[str, int]] = [("key room", 0)]
        for door in range(self.doors):
            start = self.phase_end(door)
            name = "door room" if self.doors == 1 else f"door {door + 1}"
            found += [("apple room", start), (name, start + self.distractor_steps)]
        return tuple(found)

    def phase_end(self, door: Any) -> Any:
        """When the phase in front of a door ends, the first one being 1; that of keys for 0."""
        return self.key_steps + door * (self.distractor_steps + self.door_steps)

    def place(self, time: Int[Array, ""]) -> tuple[Int[Array, ""], Int[Array, ""]]:
        """The room at this time, and the number of the door that is next, 0 in the key room."""
        return rooms.place(
            time, self.key_steps, self.distractor_steps, self.door_steps, doors=self.doors
        )

    def keys_visible(self, state: RoomState) -> Bool[Array, ""]:
        """Whether the keys of the first room are still to be seen where they lie."""
        del state
        return jnp.bool_(True)

    def begin(self, key: Key, held: Array) -> tuple[RoomState, TimeStep]:
        """Places the agent, the keys of the first room and the apples."""
        start, keys, apples = rooms.furnish(key, len(self.first_colours), self.apples)
        state = RoomState(
            time=jnp.int32(0),
            position=start,
            keys=keys,
            held=held,
            light=jnp.int32(0),
            apples=apples,
        )
        return state, first_step(self.observe(state), self.event_names)

    def arrive(
        self,
        state: RoomState,
        position: rooms.Position,
        *,
        reward: Float32[Array, ""],
        last: Bool[Array, ""],
        success: Array,
        taken: Sequence[Bool[Array, ""]],
        opened: Bool[Array, ""],
    ) -> tuple[RoomState, TimeStep]:
        """Ends a step: takes the apple of a cell, and moves on when the phase is over.

        Args:
          state: before the step, but with the keys as they are after it.
          position: the cell that the step leads to.
          reward: for all but the apple.
          last: whether the episode ends.
          success: of the step.
          taken: for each key that has an event, whether the step takes it.
          opened: whether the step opens a door that counts.
        """
        (room, _), time = self.place(state.time), state.time + 1
        apples, ate = rooms.take_apple(state.apples, position, time, self.apple_return_steps)
        ate = ate & (room == rooms.APPLE_ROOM)
        next_room, _ = self.place(time)
        entrance = jnp.asarray(rooms.ENTRANCES)[next_room]
        state = dataclasses.replace(
            state,
            time=time,
            position=jnp.where(next_room == room, position, entrance),
            apples=jnp.where(ate, apples, state.apples),
        )
        happened = (success, *taken, ate, opened)
        return state, next_step(
            self.observe(state),
            jnp.where(ate, self.apple_reward, 0.0) + reward,
            last=last,
            discount=1 - last.astype(jnp.float32),
            events={
                name: x.astype(jnp.float32)
                for name, x in zip(self.event_names, happened, strict=True)
            },
        )

    def move(
        self, state: RoomState, key: rooms.Position, avoided: Sequence[rooms.Position] = ()
    ) -> Int[Array, ""]:
        """The move of a scripted policy: to a key, then, in turns, to apples and the doors.

        Args:
          state: where everything is.
          key: the place of the key to take in the key room.
          avoided: those of keys to leave there.
        """
        room, _ = self.place(state.time)
        apple = rooms.best_apple(state.position, state.apples - state.time)
        targets = jnp.stack([key, apple, jnp.asarray(rooms.DOOR_CELL)])
        free = jnp.asarray(rooms.GROUND)[room] != rooms.WALL
        for place in avoided:
            free = free & ~(rooms.at(place) & (room == rooms.KEY_ROOM))
        return rooms.move_towards(targets[room], state.position, free)

    def draw(self, state: RoomState) -> rooms.Board:
        """What each cell of the room shows."""
        return rooms.draw(
            self.place(state.time)[0],
            state.position,
            dict(zip(self.first_colours, state.keys, strict=True)),
            state.apples <= state.time,
            keys_visible=self.keys_visible(state),
            light=state.light,
        )

    def observe(self, state: RoomState) -> Float32[Array, "rows columns 3"]:
        """What the agent sees."""
        return rooms.look(self.draw(state), state.position, self.view)
