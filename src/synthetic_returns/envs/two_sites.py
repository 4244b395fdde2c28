"""Two sites: two keys in the first room, each good for one of two doors, both to be had.

The rooms, colours and moves of Key-to-Door. Rewards that come from two different causes: a method
that gives a state one contribution to all later rewards cannot say which of the doors a key opens.

Observation: the ``[5, 5, 3]`` colours of the cells around the agent, or the whole map with
  ``view="full"``. On the step on which a key is taken, the agent's own cell lights up in the key's
  colour; the key is gone then, and after that nothing shows what the agent has.
Actions: 0 up, 1 down, 2 left, 3 right; walls and locked doors stop the agent.
Reward: ``apple_reward`` for an apple, ``door_reward`` for each door that is opened: the first one
  needs the yellow key, the second one the red key. Opening a door uses its key up.
Termination: ``key_steps`` steps in the key room, then twice ``distractor_steps`` in the apple room
  and ``door_steps`` in front of a door. The first door changes nothing but the reward; the episode
  ends when the second one opens, or with its phase.
"""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int

from synthetic_returns.envs import rooms
from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.checks import require_at_least
from synthetic_returns.envs.spec import EventMark, Phases
from synthetic_returns.envs.task import Task
from synthetic_returns.types import Key, TimeStep, first_step, next_step

__all__ = ["TASKS", "TwoSites", "TwoSitesState"]

COLOURS = (rooms.YELLOW, rooms.RED)  # of the keys, in the order of their doors
DOORS = len(COLOURS)
NOWHERE = (-1, -1)  # the place of a key that was taken


class TwoSitesState(eqx.Module):
    """The agent, what it holds, and what lies in the rooms.

    Attributes:
      keys: where the keys lie that are not taken.
      held: which keys the agent has.
      light: the colour of the key taken on the last step, 0 for none.
      apples: the time since when an apple lies on each cell.
    """

    time: Int[Array, ""]
    position: rooms.Position
    keys: Int[Array, "keys 2"]
    held: Bool[Array, "keys"]
    light: Int[Array, ""]
    apples: rooms.Board


@dataclasses.dataclass(frozen=True)
class TwoSites(Environment[TwoSitesState]):
    """Key-to-Door with two keys and two doors.

    Attributes:
      key_steps: length of the first phase.
      distractor_steps: length of each phase in the apple room.
      door_steps: length of each phase in front of a door, the largest one for the second.
      apples: apples in the apple room, on random cells of 22.
      apple_reward: reward of each apple.
      apple_return_steps: after how many steps a taken apple is back.
      door_reward: reward of opening a door.
      view: "crop", the 5 x 5 cells around the agent, or "full", the whole room.
    """

    key_steps: int = 15
    distractor_steps: int = 30
    door_steps: int = 10
    apples: int = 10
    apple_reward: float = 1.0
    apple_return_steps: int = 20
    door_reward: float = 5.0
    view: rooms.View = "crop"

    event_marks: ClassVar = {
        "yellow_key": EventMark("diamond", "gold"),
        "red_key": EventMark("diamond", "red"),
        "apple": EventMark("circle", "green"),
        "door": EventMark("square", "purple"),
    }

    def __post_init__(self) -> None:
        require_at_least(1, key_steps=self.key_steps, apple_return_steps=self.apple_return_steps)
        # Without apples between them, the agent would never leave one door for the next.
        require_at_least(1, distractor_steps=self.distractor_steps)
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
    def max_episode_steps(self) -> int:
        """The key room, then an apple room and a door room for each key."""
        return self.key_steps + DOORS * (self.distractor_steps + self.door_steps)

    @property
    def event_names(self) -> tuple[str, ...]:
        """Keys by colour, apples, doors; ``success`` is the share of the doors opened."""
        return ("success", "yellow_key", "red_key", "apple", "door")

    @property
    def phases(self) -> Phases:
        """The rooms."""
        found: list[tuple[str, int]] = [("key room", 0)]
        for door in range(DOORS):
            start = self.key_steps + door * (self.distractor_steps + self.door_steps)
            found += [("apple room", start), (f"door {door + 1}", start + self.distractor_steps)]
        return tuple(found)

    def reset(self, key: Key) -> tuple[TwoSitesState, TimeStep]:
        """Places the agent, the keys and the apples."""
        start, keys, apples = rooms.furnish(key, DOORS, self.apples)
        state = TwoSitesState(
            time=jnp.int32(0),
            position=start,
            keys=keys,
            held=jnp.zeros(DOORS, bool),
            light=jnp.int32(0),
            apples=apples,
        )
        return state, first_step(self._observe(state), self.event_names)

    def step(self, state: TwoSitesState, action: Int[Array, ""]) -> tuple[TwoSitesState, TimeStep]:
        """Walks, takes what lies there, opens a door, and moves on to the next room."""
        room, door = self.place(state.time)
        time = state.time + 1
        next_key = jnp.arange(1, DOORS + 1, dtype=jnp.int32) == door
        has_key = jnp.any(state.held & next_key)
        position = rooms.walk(room, state.position, action, can_open=has_key)
        opened = has_key & (room == rooms.DOOR_ROOM) & rooms.is_at(position, rooms.DOOR_CELL)
        last = (opened & (door == DOORS)) | (time == self.max_episode_steps)

        found = jnp.all(state.keys == position[None], axis=1) & (room == rooms.KEY_ROOM)
        apples, ate = rooms.take_apple(state.apples, position, time, self.apple_return_steps)
        ate = ate & (room == rooms.APPLE_ROOM)

        next_room, _ = self.place(time)
        state = TwoSitesState(
            time=time,
            position=jnp.where(
                next_room == room, position, jnp.asarray(rooms.ENTRANCES)[next_room]
            ),
            keys=jnp.where(found[:, None], jnp.asarray([NOWHERE]), state.keys),
            held=(state.held | found) & ~(next_key & opened),
            light=jnp.sum(jnp.where(found, jnp.asarray(COLOURS), 0)),
            apples=jnp.where(ate, apples, state.apples),
        )
        happened = (jnp.where(opened, 1 / DOORS, 0.0), *found, ate, opened)
        return state, next_step(
            self._observe(state),
            jnp.where(ate, self.apple_reward, 0.0) + jnp.where(opened, self.door_reward, 0.0),
            last=last,
            discount=1 - last.astype(jnp.float32),
            events={
                name: x.astype(jnp.float32)
                for name, x in zip(self.event_names, happened, strict=True)
            },
        )

    def optimal_action(self, state: TwoSitesState) -> Int[Array, ""]:
        """Takes the nearer key, then the other one, then, in turns, apples and the doors."""
        room, _ = self.place(state.time)
        ways = jnp.sum(jnp.abs(state.keys - state.position[None]), axis=1)
        taken = state.keys[:, 0] == NOWHERE[0]
        nearest = state.keys[jnp.argmin(jnp.where(taken, rooms.NEVER, ways))]
        apple = rooms.best_apple(state.position, state.apples - state.time)
        targets = jnp.stack([nearest, apple, jnp.asarray(rooms.DOOR_CELL)])
        free = jnp.asarray(rooms.GROUND)[room] != rooms.WALL
        return rooms.move_towards(targets[room], state.position, free)

    def owed(self, state: TwoSitesState) -> Float32[Array, ""]:
        """A door for every key whose door is still to come and can be reached in time."""
        room, door = self.place(state.time)
        of_keys = jnp.arange(1, DOORS + 1, dtype=jnp.int32)
        phase_end = self.key_steps + door * (self.distractor_steps + self.door_steps)
        reachable = rooms.steps_to_door(state.position) <= phase_end - state.time
        in_time = (of_keys > door) | ((of_keys == door) & (reachable | (room != rooms.DOOR_ROOM)))
        return self.door_reward * jnp.sum(state.held & in_time, dtype=jnp.float32)

    def render(self, state: TwoSitesState) -> np.ndarray:
        """The whole room in the colours of the observation, and the keys that the agent has."""
        held = (
            colour if has else 0 for colour, has in zip(COLOURS, state.held.tolist(), strict=True)
        )
        return rooms.to_pixels(self._draw(state), *held)

    def place(self, time: Int[Array, ""]) -> tuple[Int[Array, ""], Int[Array, ""]]:
        """The room at this time, and the number of the door that is next, 0 in the key room."""
        return rooms.place(
            time, self.key_steps, self.distractor_steps, self.door_steps, doors=DOORS
        )

    def _draw(self, state: TwoSitesState) -> rooms.Board:
        return rooms.draw(
            self.place(state.time)[0],
            state.position,
            dict(zip(COLOURS, state.keys, strict=True)),
            state.apples <= state.time,
            keys_visible=jnp.bool_(True),
            light=state.light,
        )

    def _observe(self, state: TwoSitesState) -> Float32[Array, "rows columns 3"]:
        return rooms.look(self._draw(state), state.position, self.view)


TASKS = (
    Task(
        name="key-to-door-two-sites",
        description="take two keys, each opens a door of its own, both pay",
        environment=TwoSites,
        random_return=5.95,
        optimal_return=33.1,
        events={
            "success": "share of the doors opened",
            "yellow_key": "the key of the first door was taken",
            "red_key": "the key of the second door was taken",
            "apple": "an apple was taken",
            "door": "a door was opened",
        },
        presets={"fast": {"steps": 600_000}, "paper": {"steps": 5_000_000}},
    ),
)
