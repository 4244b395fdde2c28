"""Key-to-Door: a key taken in the first room opens a door in the third, apples in between.

Observation: the ``[5, 5, 3]`` colours of the cells around the agent (or the whole map, ``[7, 11,
  3]``, with ``view="full"``): floor white, walls black, agent blue, apples green, door purple, keys
  yellow, red, cyan and orange. On the one step on which a key is taken, the agent's own cell
  lights up in the key's colour; after that nothing shows whether the agent has a key. With
  ``hidden`` nothing shows it even then: a key is a block in the way, walking against it takes it,
  and all looks as before.
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

A chain is a ladder of difficulty beyond the paper: with ``keys`` keys, an apple room and a door
room follow for each of them, and the first decision that matters lies ``keys`` apple rooms before
the one reward that depends on it. The key of the first room is yellow; behind the doors lie the
red, the cyan and the orange one. Opening a door but the last takes the key behind it and changes
nothing else: the door looks as before and the phase takes its full time, so that neither gives the
key away. Only the last door pays and ends the episode.
"""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int

from synthetic_returns.envs import rooms
from synthetic_returns.envs.checks import require, require_at_least
from synthetic_returns.envs.credit_measure import CreditMeasure, PeakOnEvent
from synthetic_returns.envs.room_task import RoomState, RoomTask
from synthetic_returns.envs.spec import EventMark
from synthetic_returns.envs.task import Task
from synthetic_returns.types import Key, TimeStep

__all__ = ["TASKS", "KeyToDoor"]

KEY_COLOURS = (rooms.YELLOW, rooms.RED, rooms.CYAN, rooms.ORANGE)  # of a chain, in order


@dataclasses.dataclass(frozen=True)
class KeyToDoor(RoomTask):
    """The Key-to-Door task, through its rewards the paper's two variants, and chains of doors.

    ``held`` is the colour of the newest key that the agent has.

    Attributes:
      keys: keys to take one after the other, and doors to open with them: 1 to 4.
      red_key_reward: reward of opening the door with a red key instead; None for no such key.
      closed_reward: reward of the last step if the door stayed closed.
      door_step_reward: reward of every step of the third phase that leaves the door closed.
      hidden: whether taking a key leaves no mark in any observation.
    """

    keys: int = 1
    red_key_reward: float | None = None
    closed_reward: float = 0.0
    door_step_reward: float = 0.0
    hidden: bool = False

    event_marks: ClassVar = {"key": EventMark("diamond", "gold"), **RoomTask.event_marks}

    def __post_init__(self) -> None:
        require_at_least(1, keys=self.keys)
        require(
            self.keys <= len(KEY_COLOURS),
            f"keys={self.keys} are too many: use 1 to {len(KEY_COLOURS)}.",
        )
        variant = (self.red_key_reward, self.closed_reward, self.door_step_reward)
        require(
            self.keys == 1 or variant == (None, 0, 0),
            f"keys={self.keys} is a chain of doors, of which only the last one pays: "
            "red_key_reward, closed_reward and door_step_reward are for keys=1.",
        )
        require(
            not self.hidden or (self.keys == 1 and self.red_key_reward is None),
            "hidden=True is for a single key: leave keys and red_key_reward as they are.",
        )
        super().__post_init__()

    @property
    def doors(self) -> int:
        """One for each key of a chain."""
        return self.keys

    @property
    def first_colours(self) -> tuple[int, ...]:
        """The keys of the first room."""
        return (rooms.YELLOW,) if self.red_key_reward is None else (rooms.YELLOW, rooms.RED)

    @property
    def event_names(self) -> tuple[str, ...]:
        """Keys by colour or number, apples, last door; ``success``: opened with the best key."""
        if self.keys > 1:
            keys = tuple(f"key_{number + 1}" for number in range(self.keys))
        else:
            keys = ("key",) if self.red_key_reward is None else ("yellow_key", "red_key")
        return ("success", *keys, "apple", "door")

    @property
    def credit_measure(self) -> CreditMeasure | None:
        """The key should earn the most of phase one; of several keys no single one has to."""
        if "key" not in self.event_names:
            return None
        return PeakOnEvent(
            question="the largest synthetic return of phase one is on the step that takes the key",
            event="key",
            # The state arrived in earns the credit, so the last move of phase one counts.
            within=self.key_steps + 1,
            required=0.95,
        )

    def reset(self, key: Key) -> tuple[RoomState, TimeStep]:
        """Places the agent, the keys of the first room and the apples."""
        return self.begin(key, held=jnp.int32(0))

    def step(self, state: RoomState, action: Int[Array, ""]) -> tuple[RoomState, TimeStep]:
        """Walks, takes what lies there, opens the door, and moves on to the next room."""
        room, door = self.place(state.time)
        held = state.held
        needed = rooms.YELLOW + door - 1  # a red key opens the first door as well
        position = rooms.walk(room, state.position, action, can_open=held >= needed)
        in_door_room = room == rooms.DOOR_ROOM
        opened = in_door_room & rooms.is_at(position, rooms.DOOR_CELL)
        wins = opened & (door == self.keys)
        last = wins | (state.time + 1 == self.max_episode_steps)

        # A key of the first room, or the one behind a door, which only the newest key gives.
        taken = jnp.where(opened & ~wins & (held == needed), held + 1, 0)
        for colour, place in zip(self.first_colours, state.keys, strict=True):
            reached = (room == rooms.KEY_ROOM) & rooms.is_at(position, place)
            taken = jnp.where(reached & (held == 0), colour, taken)
            if self.hidden:  # it is in the way, and stays there
                position = jnp.where(reached, state.position, position)

        reward = (
            jnp.where(wins, self._door_reward(held), 0.0)
            + jnp.where(last & ~wins, self.closed_reward, 0.0)
            + jnp.where(in_door_room & ~opened, self.door_step_reward, 0.0)
        )
        colours = KEY_COLOURS[: self.keys] if self.keys > 1 else self.first_colours
        return self.arrive(
            dataclasses.replace(
                state,
                held=jnp.where(taken > 0, taken, held),
                light=jnp.zeros_like(taken) if self.hidden else taken,
            ),
            position,
            reward=reward,
            last=last,
            success=wins & (held == KEY_COLOURS[self.keys - 1]),
            taken=[taken == colour for colour in colours],
            opened=wins,
        )

    def optimal_action(self, state: RoomState) -> Int[Array, ""]:
        """Takes the yellow key, then, in turns, the nearest apples and the doors."""
        best_key, *other_keys = state.keys
        return self.move(state, best_key, avoided=other_keys)

    def owed(self, state: RoomState) -> Float32[Array, ""]:
        """What the newest key is worth: the last door's reward, and the cost of a closed one.

        Of a chain, the first key has all of it, because the later ones follow from it; it is lost
        with the first door that can no longer be reached in time.
        """
        room, door = self.place(state.time)
        in_door_room = room == rooms.DOOR_ROOM
        steps_left = jnp.where(in_door_room, self.phase_end(door) - state.time, self.door_steps)
        from_entrance = rooms.steps_to_door(jnp.asarray(rooms.ENTRANCES[rooms.DOOR_ROOM]))
        way = jnp.where(in_door_room, rooms.steps_to_door(state.position), from_entrance)
        steps_saved = (steps_left - (way - 1)).astype(jnp.float32)  # in front of a closed door

        needed = rooms.YELLOW + jnp.maximum(door, 1) - 1
        opens_next = (state.held >= needed) & (way <= steps_left)
        if self.keys > 1:
            opens_next = opens_next | (state.held > needed)  # it is open already
        worth = (
            self._door_reward(state.held) - self.closed_reward - self.door_step_reward * steps_saved
        )
        return jnp.where(opens_next, worth, 0.0)

    def render(self, state: RoomState) -> np.ndarray:
        """The whole room in the colours of the observation, and the newest key of the agent."""
        return rooms.to_pixels(self.draw(state), int(state.held))

    def keys_visible(self, state: RoomState) -> Bool[Array, ""]:
        """Taking one key removes the others; a hidden one stays where it is."""
        return (state.held == 0) | self.hidden

    def _door_reward(self, held: Int[Array, ""]) -> Float32[Array, ""]:
        """What the last door will pay to an agent that has this key now."""
        if self.red_key_reward is None:
            return jnp.float32(self.door_reward)
        return jnp.where(held == rooms.RED, self.red_key_reward, self.door_reward)


_EVENTS = {
    "success": "the door was opened",
    "key": "the key was taken",
    "apple": "an apple was taken",
    "door": "the door was opened",
}
# The policy of the key room has to stay random until the first doors have taught what a key is
# worth.
_PATIENT = {"agent.entropy_cost": 0.03}
# Which key is worth a longer way takes longer to find out than to reach any: explore, and look at
# every cell alike (kernel 1), so that colours are learned once for all cells.
_CURIOUS = {
    "engine.num_envs": 16,
    "agent.epochs": 4,
    "agent.entropy_cost": 0.3,
    "agent.discount": 0.97,
    "agent.torso.channels": (16,),
    "agent.torso.kernel": 1,
}
_PAPER = {"steps": 5_000_000}

TASKS = (
    Task(
        name="key-to-door",
        description="take a key, collect apples, then open a door that needs the key",
        environment=KeyToDoor,
        random_return=5.68,
        optimal_return=27.7,
        events=_EVENTS,
        presets={
            "fast": {"steps": 400_000},
            "episodic": _PATIENT | {"steps": 800_000},
            "paper": _PAPER,
        },
    ),
    Task(
        name="key-to-door-no-reward",
        description="the door pays nothing, but every step in front of it costs 1",
        environment=KeyToDoor,
        random_return=-6.99,
        optimal_return=10.6,
        events=_EVENTS,
        defaults={"door_reward": 0.0, "door_step_reward": -1.0, "distractor_steps": 30},
        presets={
            "fast": {"steps": 400_000},
            # Opening the door pays by ending the penalties: look further than the reward of one
            # step.
            "episodic": _PATIENT | {"engine.num_envs": 16, "steps": 800_000, "credit.horizon": 5},
            "paper": _PAPER,
        },
    ),
    Task(
        name="key-to-door-two-keys",
        description="the door costs 1 with the yellow key, 2 with the red one, 5 if closed",
        environment=KeyToDoor,
        random_return=0.70,
        optimal_return=21.7,
        events={
            "success": "the door was opened with the yellow key",
            "yellow_key": "the yellow key was taken",
            "red_key": "the red key was taken",
            "apple": "an apple was taken",
            "door": "the door was opened",
        },
        defaults={"door_reward": -1.0, "red_key_reward": -2.0, "closed_reward": -5.0},
        presets={
            "fast": _CURIOUS | {"steps": 1_500_000},
            # The penalty of a closed door comes after the choice to open it: look at the whole
            # return.
            "episodic": _CURIOUS | {"steps": 1_500_000, "credit.horizon": 85},
            "paper": _PAPER,
        },
    ),
    Task(
        name="key-to-door-chained",
        description="each door gives the key to the next, only the last one pays",
        environment=KeyToDoor,
        random_return=5.77,
        optimal_return=28.1,
        events={
            "success": "the last door was opened",
            "key_1": "the key of the first room was taken",
            "key_2": "the key behind the first door was taken; key_3 and key_4 likewise",
            "apple": "an apple was taken",
            "door": "the last door was opened",
        },
        defaults={"keys": 2, "distractor_steps": 30},
        # A random agent opens the last door in one of a thousand episodes: stay random until then.
        presets={"fast": {"steps": 2_000_000, "agent.entropy_cost": 0.2}, "paper": _PAPER},
    ),
    Task(
        name="key-to-door-hidden",
        description="take a key without any sign of it, then open a door that needs it",
        environment=KeyToDoor,
        random_return=5.68,
        optimal_return=27.6,
        events=_EVENTS,
        defaults={"hidden": True},
        presets={"fast": {"steps": 600_000}, "paper": _PAPER},
    ),
)
