"""Scripted policies that know the hidden state: the documented optimum of every task.

They are what the tests compare the documented returns with and what the picture strips show.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from synthetic_returns.envs import rooms
from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.catch import Catch, CatchState
from synthetic_returns.envs.chain import Chain, ChainState
from synthetic_returns.envs.key_to_door import KeyToDoor, KeyToDoorState
from synthetic_returns.envs.key_to_door_chained import KeyToDoorChained, KeyToDoorChainedState
from synthetic_returns.envs.umbrella import Umbrella, UmbrellaState

__all__ = ["optimal_action"]

Action = Int[Array, ""]
_LONGEST_WAY = 20  # at least the longest shortest way through any room


@functools.singledispatch
def optimal_action(env: Environment, state) -> Action:
    """The action of the scripted policy in this state of this task."""
    raise NotImplementedError(
        f"{type(env).__name__} has no scripted policy: register one in envs/scripted.py."
    )


@optimal_action.register
def _(env: Chain, state: ChainState) -> Action:
    """Walks to the trigger."""
    del env, state
    return jnp.int32(1)


@optimal_action.register
def _(env: Catch, state: CatchState) -> Action:
    """Follows the ball."""
    _, column = env.ball(state.time, state.columns)
    return jnp.sign(column - state.paddle) + 1


@optimal_action.register
def _(env: KeyToDoor, state: KeyToDoorState) -> Action:
    """Takes the yellow key, then the nearest apples, then the door."""
    room = env.room(state.time)
    return _visit(room, state.position, state.keys, state.apples - state.time)


@optimal_action.register
def _(env: KeyToDoorChained, state: KeyToDoorChainedState) -> Action:
    """Takes the key, then, in turns, the nearest apples and the doors."""
    room, _ = env.place(state.time)
    return _visit(room, state.position, state.key_place[None], state.apples - state.time)


@optimal_action.register
def _(env: Umbrella, state: UmbrellaState) -> Action:
    """Believes the forecast."""
    del env
    return state.rain.astype(jnp.int32)


def _visit(
    room: Int[Array, ""],
    position: rooms.Position,
    key_places: Int[Array, "keys 2"],
    waits: rooms.Board,
) -> Action:
    """One move towards the first key, the best apple or the door, whichever the room has."""
    first_key, *other_keys = key_places
    targets = jnp.stack([first_key, _best_apple(position, waits), jnp.asarray(rooms.DOOR_CELL)])
    free = jnp.asarray(rooms.GROUND)[room] != rooms.WALL
    for place in other_keys:
        free = free & ~(rooms.at(place) & (room == rooms.KEY_ROOM))
    distances = _distances(free, targets[room])
    reached = position[None] + jnp.asarray(rooms.MOVES)
    return jnp.argmin(distances[reached[:, 0], reached[:, 1]]).astype(jnp.int32)


def _best_apple(position: rooms.Position, waits: rooms.Board) -> rooms.Position:
    """Among the apples that can be had first, the nearest."""
    cells = jnp.asarray(rooms.APPLE_CELLS)
    steps = jnp.sum(jnp.abs(cells - position[None]), axis=1)
    # To take an apple again where the agent stands, it has to step aside and come back.
    steps = jnp.where(steps == 0, 2, steps)
    arrival = jnp.maximum(steps, waits[cells[:, 0], cells[:, 1]])
    return cells[jnp.lexsort((steps, arrival))[0]]


def _distances(free: Bool[Array, "height width"], target: rooms.Position) -> rooms.Board:
    """Moves from every free cell to the target; a large number from any other."""
    far = free.size

    def spread(_, distances):
        neighbours = [jnp.roll(distances, tuple(move), (0, 1)) for move in rooms.MOVES]
        through = jnp.minimum(jnp.min(jnp.stack(neighbours), axis=0) + 1, far)
        return jnp.where(free, jnp.minimum(distances, through), far)

    start = jnp.where(rooms.at(target), 0, far)
    return jax.lax.fori_loop(0, _LONGEST_WAY, spread, start)
