import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.envs import rooms
from synthetic_returns.envs.key_to_door import KeyToDoor
from synthetic_returns.envs.registry import make
from tests.envs.playing import arrange, follow, play, random_policy

UP, DOWN, LEFT, RIGHT = range(4)
MOVES = {UP: (-1, 0), DOWN: (1, 0), LEFT: (0, -1), RIGHT: (0, 1)}


def place(row: int, column: int) -> jax.Array:
    """A position on the map, counted without the margin."""
    return jnp.array([row + rooms.SIGHT, column + rooms.SIGHT], jnp.int32)


def chance_of_visit(room, starts, target, moves: int) -> float:
    """Exact probability that a random walk visits the target, by dynamic programming."""
    chances = {start: 1 / len(starts) for start in starts}
    visited = 0.0
    for _ in range(moves):
        after: dict[tuple[int, int], float] = {}
        for (row, column), chance in chances.items():
            for step in MOVES.values():
                cell = (row + step[0], column + step[1])
                cell = (row, column) if rooms.MAPS[room][cell[0]][cell[1]] == "#" else cell
                if cell == target:
                    visited += chance / 4
                else:
                    after[cell] = after.get(cell, 0) + chance / 4
        chances = after
    return visited


def marked(room: int, letter: str) -> list[tuple[int, int]]:
    return [
        (row, column)
        for row, line in enumerate(rooms.MAPS[room])
        for column, mark in enumerate(line)
        if mark == letter
    ]


def test_random_policy_statistics():
    """Exact chances for key and door; apples as the public re-creations have them."""
    starts = marked(rooms.KEY_ROOM, "s")
    keys = marked(rooms.KEY_ROOM, "k")
    key = np.mean([chance_of_visit(rooms.KEY_ROOM, starts, cell, 15) for cell in keys])
    (door,) = marked(rooms.DOOR_ROOM, "d")
    opening = chance_of_visit(rooms.DOOR_ROOM, marked(rooms.DOOR_ROOM, "s"), door, 10)
    assert key == pytest.approx(0.105, abs=0.004)
    assert key * opening == pytest.approx(0.020, abs=0.001)

    played = play(KeyToDoor(), random_policy, seed=2, episodes=8000)
    assert played["key"].mean() == pytest.approx(key, abs=4 * np.sqrt(key / 8000))
    assert played["door"].mean() == pytest.approx(key * opening, abs=4 * np.sqrt(0.02 / 8000))
    assert played["apple"].mean() == pytest.approx(5.5, abs=0.2)
    assert set(played["length"][played["door"] == 0]) == {85}


def test_rooms_are_as_the_re_creations_have_them():
    assert len(marked(rooms.KEY_ROOM, "k")) == len(marked(rooms.KEY_ROOM, "s")) == 10
    assert len(rooms.APPLE_CELLS) == 22
    first, _ = jax.jit(jax.vmap(KeyToDoor().reset))(jax.random.split(jax.random.key(0), 500))
    assert len(np.unique(first.position, axis=0)) == 10
    assert len(np.unique(first.keys[:, 0], axis=0)) == 10
    assert (np.sum(first.apples == 0, axis=(1, 2)) == 10).all()
    assert len(np.unique(np.argwhere(first.apples == 0)[:, 1:], axis=0)) == 22


def test_the_key_lights_one_pixel_for_one_step():
    env = KeyToDoor()
    state = arrange(env, position=place(4, 5), keys=place(2, 5)[None])
    steps = follow(env, state, [UP, UP, DOWN, UP])
    yellow = rooms.COLOURS[rooms.YELLOW]
    assert steps.events["key"].tolist() == [0, 1, 0, 0]
    # The agent's own cell: anywhere else a key that is only seen would look like one just taken.
    np.testing.assert_array_equal(steps.observation[1, rooms.SIGHT, rooms.SIGHT], yellow)
    # Before, the key is seen where it lies; afterwards there is no yellow anywhere.
    np.testing.assert_array_equal(steps.observation[0, 1, 2], yellow)
    assert not np.any(np.all(steps.observation[2:] == yellow, axis=-1))


@pytest.mark.parametrize("view", ["crop", "full"])
def test_observations_do_not_tell_whether_the_agent_has_the_key(view):
    """The same walk with and without the key looks the same up to the door, which alone differs.

    So no function of the current observation, nor of all observations since the key room, can
    explain the door's reward.
    """
    env = KeyToDoor(view=view)
    walk = np.random.default_rng(0).integers(0, 4, 75 - 15)
    actions = [*walk, LEFT, RIGHT, UP, UP]
    start = {"time": 15, "position": place(5, 5)}
    without = follow(env, arrange(env, **start, held=0), actions)
    with_key = follow(env, arrange(env, **start, held=rooms.YELLOW), actions)
    np.testing.assert_array_equal(without.observation[:-1], with_key.observation[:-1])
    np.testing.assert_array_equal(without.reward[:-1], with_key.reward[:-1])
    assert without.reward[:-1].sum() > 0, "the walk should meet apples"
    assert (without.reward[-1], with_key.reward[-1]) == (0, 5)
    assert without.discount[-1] == 1
    assert with_key.discount[-1] == 0


@pytest.mark.parametrize("view", ["crop", "full"])
def test_a_hidden_key_leaves_no_mark_in_any_observation(view):
    """It is walked against: the agent stays where it is and all looks as before."""
    env = KeyToDoor(hidden=True, view=view)
    start = {"position": place(3, 5), "keys": place(2, 5)[None]}
    actions = [UP, UP, LEFT, UP, RIGHT, *[DOWN] * 10, UP]
    steps = follow(env, arrange(env, **start), actions)
    assert np.flatnonzero(steps.events["key"]).tolist() == [0]
    np.testing.assert_array_equal(steps.observation[1], steps.observation[0])
    # The same walk of an agent that had the key all along shows the same.
    had_it = follow(env, arrange(env, **start, held=rooms.YELLOW), actions)
    assert not had_it.events["key"].any()
    np.testing.assert_array_equal(steps.observation, had_it.observation)
    yellow = np.all(steps.observation == rooms.COLOURS[rooms.YELLOW], axis=-1).sum(axis=(1, 2))
    assert (yellow[:5] == 1).all()
    assert yellow[-1] == 0  # the apple room


def test_apples_pay_and_return_after_twenty_steps():
    env = KeyToDoor()
    apples = np.full((11, 15), rooms.NEVER)
    apples[5 + rooms.SIGHT, 3 + rooms.SIGHT] = 0
    state = arrange(env, time=15, position=place(5, 5), apples=apples)
    # Takes the apple at once, then walks to and fro beside it; it is back 20 steps later.
    steps = follow(env, state, [LEFT, LEFT, *[RIGHT, LEFT] * 11])
    eaten = np.flatnonzero(steps.events["apple"])
    assert eaten.tolist() == [1, 21]
    assert steps.reward[eaten].tolist() == [1, 1]
    green = np.all(steps.observation == rooms.COLOURS[rooms.APPLE], axis=-1).any(axis=(1, 2))
    assert np.flatnonzero(green).tolist() == [0]


def test_phases_change_after_their_last_move():
    env = KeyToDoor()
    state = arrange(env, time=14, position=place(3, 5), keys=place(2, 5)[None])
    step = follow(env, state, [UP])
    assert step.events["key"].tolist() == [1]
    after, _ = env.step(state, jnp.int32(UP))
    np.testing.assert_array_equal(after.position, place(5, 5))
    at_door = arrange(env, time=74, position=place(1, 1))
    after, _ = env.step(at_door, jnp.int32(UP))
    np.testing.assert_array_equal(after.position, place(3, 5))


def test_every_step_that_leaves_the_door_closed_costs_one_without_its_reward():
    env = make("key-to-door-no-reward")
    assert env.max_episode_steps == 15 + 30 + 10
    door_room = {"time": 45, "position": place(3, 5)}
    closed = follow(env, arrange(env, **door_room, held=0), [UP] * 10)
    assert closed.reward.tolist() == [-1] * 10
    opened = follow(env, arrange(env, **door_room, held=rooms.YELLOW), [UP] * 2)
    assert opened.reward.tolist() == [-1, 0]
    assert opened.discount.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("held", "rewards", "success"),
    [(0, [0] * 9 + [-5], 0), (rooms.YELLOW, [0, -1], 1), (rooms.RED, [0, -2], 0)],
)
def test_the_colour_of_the_key_decides_with_two_keys(held, rewards, success):
    env = make("key-to-door-two-keys")
    state = arrange(env, time=75, position=place(3, 5), held=held)
    steps = follow(env, state, [UP] * len(rewards))
    assert steps.reward.tolist() == rewards
    assert steps.events["success"].sum() == success
    assert steps.events["door"].sum() == (held > 0)
    assert steps.discount.tolist() == [1] * (len(rewards) - 1) + [0]


def test_taking_one_key_removes_the_other():
    env = make("key-to-door-two-keys")
    keys = jnp.stack([place(1, 5), place(2, 5)])
    steps = follow(env, arrange(env, position=place(3, 5), keys=keys), [UP, UP, DOWN])
    assert steps.events["red_key"].tolist() == [1, 0, 0]
    assert steps.events["yellow_key"].tolist() == [0, 0, 0]
    np.testing.assert_array_equal(
        steps.observation[0, rooms.SIGHT, rooms.SIGHT], rooms.COLOURS[rooms.RED]
    )
    assert not np.any(np.all(steps.observation[0] == rooms.COLOURS[rooms.YELLOW], axis=-1))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"key_steps": 0}, "key_steps=0"),
        ({"distractor_steps": -1}, "distractor_steps=-1 is not allowed"),
        ({"door_steps": 1}, "door_steps=1"),
        ({"apples": 23}, "apples=23 do not fit: the apple room has room for 0 to 22"),
        ({"apple_return_steps": 0}, "apple_return_steps=0"),
        ({"hidden": True, "keys": 2}, "hidden=True is for a single key"),
        ({"hidden": True, "red_key_reward": 1.0}, "leave keys and red_key_reward as they are"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        KeyToDoor(**parameters)


def test_unknown_views_are_refused():
    with pytest.raises(ValueError, match='view="side" is unknown: use one of'):
        rooms.check(10, "side")


@pytest.mark.parametrize("distractor_steps", [0, 30, 500])
def test_the_distractor_phase_has_any_length(distractor_steps):
    assert KeyToDoor(distractor_steps=distractor_steps).max_episode_steps == 25 + distractor_steps
