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

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int

from synthetic_returns.envs import rooms
from synthetic_returns.envs.room_task import RoomState, RoomTask
from synthetic_returns.envs.task import Task
from synthetic_returns.types import Key, TimeStep

__all__ = ["TASKS", "TwoSites"]

COLOURS = (rooms.YELLOW, rooms.RED)  # of the keys, in the order of their doors
DOORS = len(COLOURS)
NOWHERE = (-1, -1)  # the place of a key that was taken


@dataclasses.dataclass(frozen=True)
class TwoSites(RoomTask):
    """Key-to-Door with two keys and two doors; ``held`` says which keys the agent has.

    Attributes:
      distractor_steps: length of each phase in the apple room.
    """

    distractor_steps: int = 30

    @property
    def doors(self) -> int:
        """One for each key."""
        return DOORS

    @property
    def first_colours(self) -> tuple[int, ...]:
        """Both keys lie in the first room."""
        return COLOURS

    @property
    def event_names(self) -> tuple[str, ...]:
        """Keys by colour, apples, doors; ``success`` is the share of the doors opened."""
        return ("success", "yellow_key", "red_key", "apple", "door")

    def reset(self, key: Key) -> tuple[RoomState, TimeStep]:
        """Places the agent, the keys and the apples."""
        return self.begin(key, held=jnp.zeros(DOORS, bool))

    def step(self, state: RoomState, action: Int[Array, ""]) -> tuple[RoomState, TimeStep]:
        """Walks, takes what lies there, opens a door, and moves on to the next room."""
        room, door = self.place(state.time)
        next_key = jnp.arange(1, DOORS + 1, dtype=jnp.int32) == door
        has_key = jnp.any(state.held & next_key)
        position = rooms.walk(room, state.position, action, can_open=has_key)
        opened = has_key & (room == rooms.DOOR_ROOM) & rooms.is_at(position, rooms.DOOR_CELL)
        found = jnp.all(state.keys == position[None], axis=1) & (room == rooms.KEY_ROOM)
        state = dataclasses.replace(
            state,
            keys=jnp.where(found[:, None], jnp.asarray([NOWHERE]), state.keys),
            held=(state.held | found) & ~(next_key & opened),
            light=jnp.sum(jnp.where(found, jnp.asarray(COLOURS), 0)),
        )
        return self.arrive(
            state,
            position,
            reward=jnp.where(opened, self.door_reward, 0.0),
            last=(opened & (door == DOORS)) | (state.time + 1 == self.max_episode_steps),
            success=jnp.where(opened, 1 / DOORS, 0.0),
            taken=list(found),
            opened=opened,
        )

    def optimal_action(self, state: RoomState) -> Int[Array, ""]:
        """Takes the nearer key, then the other one, then, in turns, apples and the doors."""
        ways = jnp.sum(jnp.abs(state.keys - state.position[None]), axis=1)
        taken = state.keys[:, 0] == NOWHERE[0]
        return self.move(state, state.keys[jnp.argmin(jnp.where(taken, rooms.NEVER, ways))])

    def owed(self, state: RoomState) -> Float32[Array, ""]:
        """A door for every key whose door is still to come and can be reached in time."""
        room, door = self.place(state.time)
        of_keys = jnp.arange(1, DOORS + 1, dtype=jnp.int32)
        reachable = rooms.steps_to_door(state.position) <= self.phase_end(door) - state.time
        in_time = (of_keys > door) | ((of_keys == door) & (reachable | (room != rooms.DOOR_ROOM)))
        return self.door_reward * jnp.sum(state.held & in_time, dtype=jnp.float32)

    def render(self, state: RoomState) -> np.ndarray:
        """The whole room in the colours of the observation, and the keys that the agent has."""
        held = (
            colour if has else 0 for colour, has in zip(COLOURS, state.held.tolist(), strict=True)
        )
        return rooms.to_pixels(self.draw(state), *held)


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
