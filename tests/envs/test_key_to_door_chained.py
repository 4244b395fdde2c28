import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.envs import rooms
from synthetic_returns.envs.key_to_door_chained import KEY_COLOURS, KeyToDoorChained
from tests.envs.playing import arrange, follow, play, scripted_policy
from tests.envs.test_key_to_door import UP, place


def test_rooms_follow_each_other():
    env = KeyToDoorChained(keys=2, key_steps=2, distractor_steps=3, door_steps=2)
    room, door = jax.vmap(env.place)(jnp.arange(env.episode_steps + 1))
    k, a, d = rooms.KEY_ROOM, rooms.APPLE_ROOM, rooms.DOOR_ROOM
    # The last frame, after the last step, is still in front of the last door.
    assert room.tolist() == [k, k, a, a, a, d, d, a, a, a, d, d, d]
    assert door.tolist() == [0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]


def test_a_middle_door_gives_the_next_key_and_the_phase_goes_on():
    env = KeyToDoorChained(keys=3)
    first_door = {"time": 15 + 30, "position": place(3, 5)}
    steps = follow(env, arrange(env, **first_door, held=1), [UP] * 10)
    assert steps.events["key_2"].tolist() == [0, 1] + [0] * 8
    assert steps.reward.tolist() == [0] * 10
    assert steps.discount.tolist() == [1] * 10
    own_cell = steps.observation[1, rooms.SIGHT, rooms.SIGHT]
    np.testing.assert_array_equal(own_cell, rooms.COLOURS[KEY_COLOURS[1]])


def test_a_missing_key_keeps_every_later_door_closed():
    env = KeyToDoorChained(keys=2)
    last_door = {"time": 15 + 40 + 30, "position": place(3, 5)}
    closed = follow(env, arrange(env, **last_door, held=1), [UP] * 10)
    assert closed.reward.tolist() == [0] * 10
    assert closed.discount.tolist() == [1] * 9 + [0]
    opened = follow(env, arrange(env, **last_door, held=2), [UP] * 2)
    assert opened.reward.tolist() == [0, 5]
    assert opened.discount.tolist() == [1, 0]
    np.testing.assert_array_equal(opened.observation[0], closed.observation[0])


@pytest.mark.parametrize("keys", [3, 4])
def test_longer_chains_can_be_solved(keys):
    env = KeyToDoorChained(keys=keys, distractor_steps=5)
    played = play(env, scripted_policy, seed=0, episodes=50)
    assert (played["success"] == 1).all()
    for i in range(keys):
        assert (played[f"key_{i + 1}"] == 1).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"keys": 1}, "keys=1 is not allowed: use a whole number of at least 2"),
        ({"keys": 5}, "keys=5 are too many: use 2 to 4"),
        ({"distractor_steps": 0}, "distractor_steps=0"),
        ({"apples": -1}, "apples=-1"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        KeyToDoorChained(**parameters)
