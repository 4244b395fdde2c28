"""Key-to-Door with more than one key: a chain of doors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.envs import rooms
from synthetic_returns.envs.key_to_door import KEY_COLOURS, KeyToDoor
from synthetic_returns.envs.registry import make
from tests.envs.playing import arrange, follow, play, scripted_policy
from tests.envs.test_key_to_door import UP, place


def test_rooms_follow_each_other():
    env = KeyToDoor(keys=2, key_steps=2, distractor_steps=3, door_steps=2)
    room, door = jax.vmap(env.place)(jnp.arange(env.max_episode_steps + 1))
    k, a, d = rooms.KEY_ROOM, rooms.APPLE_ROOM, rooms.DOOR_ROOM
    # The last frame, after the last step, is still in front of the last door.
    assert room.tolist() == [k, k, a, a, a, d, d, a, a, a, d, d, d]
    assert door.tolist() == [0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("distractor_steps", [0, 3])
def test_a_single_door_is_the_papers_task(distractor_steps):
    env = KeyToDoor(key_steps=2, distractor_steps=distractor_steps, door_steps=2)
    room, door = jax.vmap(env.place)(jnp.arange(env.max_episode_steps + 1))
    k, a, d = rooms.KEY_ROOM, rooms.APPLE_ROOM, rooms.DOOR_ROOM
    assert room.tolist() == [k, k, *[a] * distractor_steps, d, d, d]
    assert door.tolist() == [0, 0, *[1] * (distractor_steps + 3)]
    assert env.event_names == ("success", "key", "apple", "door")


def test_phases_are_the_rooms_and_begin_with_them():
    env = KeyToDoor(keys=2, key_steps=2, distractor_steps=3, door_steps=2)
    assert env.phases == (
        ("key room", 0), ("apple room", 2), ("door 1", 5), ("apple room", 7), ("door 2", 10)
    )  # fmt: skip
    assert KeyToDoor().phases == (("key room", 0), ("apple room", 15), ("door room", 75))


def test_a_middle_door_gives_the_next_key_and_the_phase_goes_on():
    env = make("key-to-door-chained", keys=3)
    first_door = {"time": 15 + 30, "position": place(3, 5)}
    steps = follow(env, arrange(env, **first_door, held=KEY_COLOURS[0]), [UP] * 10)
    assert steps.events["key_2"].tolist() == [0, 1] + [0] * 8
    assert steps.reward.tolist() == [0] * 10
    assert steps.discount.tolist() == [1] * 10
    own_cell = steps.observation[1, rooms.SIGHT, rooms.SIGHT]
    np.testing.assert_array_equal(own_cell, rooms.COLOURS[KEY_COLOURS[1]])


def test_a_missing_key_keeps_every_later_door_closed():
    env = make("key-to-door-chained", keys=2)
    last_door = {"time": 15 + 40 + 30, "position": place(3, 5)}
    closed = follow(env, arrange(env, **last_door, held=KEY_COLOURS[0]), [UP] * 10)
    assert closed.reward.tolist() == [0] * 10
    assert closed.discount.tolist() == [1] * 9 + [0]
    opened = follow(env, arrange(env, **last_door, held=KEY_COLOURS[1]), [UP] * 2)
    assert opened.reward.tolist() == [0, 5]
    assert opened.discount.tolist() == [1, 0]
    np.testing.assert_array_equal(opened.observation[0], closed.observation[0])


@pytest.mark.parametrize("keys", [3, 4])
def test_longer_chains_can_be_solved(keys):
    env = KeyToDoor(keys=keys, distractor_steps=5)
    played = play(env, scripted_policy, seed=0, episodes=50)
    assert (played["success"] == 1).all()
    for i in range(keys):
        assert (played[f"key_{i + 1}"] == 1).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"keys": 0}, "keys=0 is not allowed: use a whole number of at least 1"),
        ({"keys": 5}, "keys=5 are too many: use 1 to 4"),
        ({"distractor_steps": 0}, "distractor_steps=0"),
        ({"apples": -1}, "apples=-1"),
        ({"red_key_reward": 1.0}, "keys=2 is a chain of doors, of which only the last one pays"),
        ({"closed_reward": -1.0}, "red_key_reward, closed_reward and door_step_reward are for"),
        ({"door_step_reward": -1.0}, "are for keys=1"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        make("key-to-door-chained", **parameters)
