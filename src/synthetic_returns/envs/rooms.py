"""The rooms of the Key-to-Door tasks: their maps, their colours, walking, apples, and the view.

The paper leaves the maps out; these follow the public re-creations. A map is 7 x 11 cells, inside
a margin of walls as wide as the agent can see, so that every view lies on the board. Positions
count from the corner of the margin.
"""

from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int

from synthetic_returns.envs.checks import require, require_at_least
from synthetic_returns.types import Key

# '#' wall, '.' floor, 'k' floor where a key may lie, 's' where the agent may start, 'a' where an
# apple may lie, 'd' door.
KEY_ROOM, APPLE_ROOM, DOOR_ROOM = 0, 1, 2
MAPS = (
    (
        "###########",
        "###kkkkk###",
        "###kkkkk###",
        "####...####",
        "###sssss###",
        "###sssss###",
        "###########",
    ),
    (
        "###########",
        "#a.a.a.a.a#",
        "#.a.a.a.a.#",
        "#a.a.a.a.a#",
        "#.a.a.a.a.#",
        "#a.a.s.a.a#",
        "###########",
    ),
    (
        "###########",
        "#####d#####",
        "####...####",
        "####.s.####",
        "####...####",
        "###########",
        "###########",
    ),
)
MAP_SHAPE = (7, 11)
SIGHT = 2  # cells in each direction that the crop shows
CROP = 2 * SIGHT + 1

# What a cell can show, and its colour. The floor is white and the walls are black because of the
# baseline: on a black floor a yellow key differs from it as a green apple does, and an agent that
# has learned to pick apples picks the key too, without any credit for it. Keys are numbered in the
# order in which a chain of doors needs them.
FLOOR, WALL, AGENT, APPLE, DOOR, YELLOW, RED, CYAN, ORANGE = range(9)
COLOURS = np.array(
    [
        (1.0, 1.0, 1.0),  # floor: white
        (0.0, 0.0, 0.0),  # wall: black
        (0.0, 0.0, 1.0),  # agent: blue
        (0.0, 0.7, 0.0),  # apple: green
        (0.6, 0.2, 0.8),  # door: purple
        (1.0, 1.0, 0.0),  # first key: yellow
        (1.0, 0.0, 0.0),  # second key: red
        (0.0, 1.0, 1.0),  # third key: cyan
        (1.0, 0.5, 0.0),  # fourth key: orange
    ],
    np.float32,
)

MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)], np.int32)  # up, down, left, right
NEVER = np.iinfo(np.int32).max
_LONGEST_WAY = 20  # at least the longest shortest way through any room

View = Literal["crop", "full"]
Position = Int[Array, "2"]
Board = Int[Array, "height width"]


def check(apples: int, view: str) -> None:
    """Refuses a number of apples that does not fit and a view that does not exist."""
    require_at_least(0, apples=apples)
    require(
        apples <= len(APPLE_CELLS),
        f"apples={apples} do not fit: the apple room has room for 0 to {len(APPLE_CELLS)}.",
    )
    require(view in get_args(View), f'view="{view}" is unknown: use one of {get_args(View)}.')


def cells(room: int, letter: str) -> np.ndarray:
    """The positions ``[n, 2]`` of the cells that the room's map marks with this letter."""
    return np.argwhere(_BOARDS[room] == letter).astype(np.int32)


_BOARDS = np.array(
    [np.pad(np.array([list(row) for row in room]), SIGHT, constant_values="#") for room in MAPS]
)
GROUND = np.select([_BOARDS == "#", _BOARDS == "d"], [WALL, DOOR], FLOOR).astype(np.int32)
_ROWS, _COLUMNS = np.indices(_BOARDS.shape[1:], np.int32)

APPLE_CELLS = cells(APPLE_ROOM, "a")
DOOR_CELL = cells(DOOR_ROOM, "d")[0]
# The agent starts at random in the key room and at a fixed cell of the others.
ENTRANCES = np.stack([cells(room, "s")[0] for room in (KEY_ROOM, APPLE_ROOM, DOOR_ROOM)])


def walk(
    room: Int[Array, ""], position: Position, action: Int[Array, ""], can_open: Bool[Array, ""]
) -> Position:
    """One move; walls, and the door unless it can be opened, leave the agent where it is."""
    target = position + jnp.asarray(MOVES)[action]
    ground = jnp.asarray(GROUND)[room, target[0], target[1]]
    return jnp.where((ground == FLOOR) | ((ground == DOOR) & can_open), target, position)


def place(
    time: Int[Array, ""], key_steps: int, distractor_steps: int, door_steps: int, doors: int
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """The room at this time, and the number of the door that is next, 0 in the key room.

    Args:
      time: steps since the start of the episode.
      key_steps: length of the first phase.
      distractor_steps: length of each phase in the apple room.
      door_steps: length of each phase in front of a door.
      doors: how many there are; each has an apple room before it.
    """
    since = time - key_steps
    round_steps = distractor_steps + door_steps
    # The frame after the last step still shows the last door.
    door = jnp.minimum(since // round_steps + 1, doors)
    in_door_room = since - (door - 1) * round_steps >= distractor_steps
    room = jnp.where(in_door_room, DOOR_ROOM, APPLE_ROOM)
    in_key_room = since < 0
    return jnp.where(in_key_room, KEY_ROOM, room), jnp.where(in_key_room, 0, door)


def steps_to_door(position: Position) -> Int[Array, ""]:
    """The steps from a cell of the door room into the door."""
    return jnp.sum(jnp.abs(position - jnp.asarray(DOOR_CELL)))


def at(position: Position) -> Bool[Array, "height width"]:
    """The board with True on this cell alone."""
    return (jnp.asarray(_ROWS) == position[0]) & (jnp.asarray(_COLUMNS) == position[1])


def is_at(position: Position, place: Int[Array, "2"] | np.ndarray) -> Bool[Array, ""]:
    """Whether the agent stands on this cell."""
    return jnp.all(position == place)


def furnish(
    key: Key, num_keys: int, num_apples: int
) -> tuple[Position, Int[Array, "keys 2"], Board]:
    """Draws where the agent starts and where keys and apples lie, all on different cells.

    Returns:
      The start, the places of the keys and, for each cell of the board, the time since when an
      apple lies there: ``NEVER`` where there is none.
    """
    hands = ((cells(KEY_ROOM, "s"), 1), (cells(KEY_ROOM, "k"), num_keys), (APPLE_CELLS, num_apples))
    # One draw for all of them; the cells with the highest numbers win.
    splits = np.cumsum([len(candidates) for candidates, _ in hands])
    luck = jnp.split(jax.random.uniform(key, (splits[-1],)), splits[:-1])
    start, keys, apples = (
        jnp.asarray(candidates)[jax.lax.top_k(numbers, count)[1]]
        for (candidates, count), numbers in zip(hands, luck, strict=True)
    )
    since = jnp.full(_ROWS.shape, NEVER, jnp.int32).at[apples[:, 0], apples[:, 1]].set(0)
    return start[0], keys, since


def take_apple(
    apples: Board, position: Position, time: Int[Array, ""], return_steps: int
) -> tuple[Board, Bool[Array, ""]]:
    """Takes the apple under the agent, if there is one; it is back ``return_steps`` later."""
    taken = at(position) & (apples <= time)
    return jnp.where(taken, time + return_steps, apples), jnp.any(taken)


def best_apple(position: Position, waits: Board) -> Position:
    """Among the apples that can be had first, the nearest.

    Args:
      position: where the agent is.
      waits: for each cell, the steps until an apple lies there; not positive if one does now.
    """
    steps = jnp.sum(jnp.abs(jnp.asarray(APPLE_CELLS) - position[None]), axis=1)
    # To take an apple again where the agent stands, it has to step aside and come back.
    steps = jnp.where(steps == 0, 2, steps)
    arrival = jnp.maximum(steps, waits[APPLE_CELLS[:, 0], APPLE_CELLS[:, 1]])
    return jnp.asarray(APPLE_CELLS)[jnp.lexsort((steps, arrival))[0]]


def move_towards(
    target: Position, position: Position, free: Bool[Array, "height width"]
) -> Int[Array, ""]:
    """The first action of a shortest way over free cells."""
    far = free.size

    def spread(_, distances):
        neighbours = [jnp.roll(distances, tuple(move), (0, 1)) for move in MOVES]
        through = jnp.minimum(jnp.min(jnp.stack(neighbours), axis=0) + 1, far)
        return jnp.where(free, jnp.minimum(distances, through), far)

    start = jnp.where(at(target), 0, far)
    distances = jax.lax.fori_loop(0, _LONGEST_WAY, spread, start)
    reached = position[None] + jnp.asarray(MOVES)
    return jnp.argmin(distances[reached[:, 0], reached[:, 1]]).astype(jnp.int32)


def draw(
    room: Int[Array, ""],
    position: Position,
    keys: dict[int, Position],
    apples: Bool[Array, "height width"],
    *,
    keys_visible: Bool[Array, ""],
    light: Int[Array, ""],
) -> Board:
    """What each cell of the board shows.

    Args:
      room: the room the agent is in.
      position: where the agent is.
      keys: where the key of each colour lies, in the key room.
      apples: where apples lie, in the apple room.
      keys_visible: whether the keys are still there.
      light: the colour of the key that was taken on this very step, 0 for none. The agent's own
        cell shows it: no other cell would do, a key may lie there.
    """
    board = jnp.asarray(GROUND)[room]
    for colour, place in keys.items():
        board = jnp.where(at(place) & keys_visible & (room == KEY_ROOM), colour, board)
    board = jnp.where(apples & (room == APPLE_ROOM), APPLE, board)
    return jnp.where(at(position), jnp.where(light > 0, light, AGENT), board)


def look(board: Board, position: Position, view: View) -> Float32[Array, "rows columns 3"]:
    """The agent's view: the crop around it, or the whole map."""
    if view == "crop":
        seen = jax.lax.dynamic_slice(board, tuple(position - SIGHT), (CROP, CROP))
    else:
        seen = board[SIGHT:-SIGHT, SIGHT:-SIGHT]
    return jnp.asarray(COLOURS)[seen]


def view_shape(view: View) -> tuple[int, ...]:
    """The shape of the observation of this view."""
    return (CROP, CROP, 3) if view == "crop" else (*MAP_SHAPE, 3)


def to_pixels(board: Board, *held: int) -> np.ndarray:
    """The whole map in colour, for people; the keys that the agent has are in the top left."""
    shown = np.array(board)[SIGHT:-SIGHT, SIGHT:-SIGHT]
    for column, colour in enumerate(held):
        shown[0, column] = colour or shown[0, column]
    return np.round(COLOURS[shown] * 255).astype(np.uint8)
