import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.envs import rooms
from synthetic_returns.envs.two_sites import TwoSites
from tests.envs.playing import arrange, follow
from tests.envs.test_key_to_door import DOWN, UP, place

FIRST_DOOR, SECOND_DOOR = 15 + 30, 15 + 40 + 30


def test_both_keys_can_be_taken_and_each_is_gone_then():
    env = TwoSites()
    keys = jnp.stack([place(1, 5), place(2, 5)])
    steps = follow(env, arrange(env, position=place(3, 5), keys=keys), [UP, UP, DOWN, UP])
    assert steps.events["red_key"].tolist() == [1, 0, 0, 0]
    assert steps.events["yellow_key"].tolist() == [0, 1, 0, 0]
    own_cell = steps.observation[:, rooms.SIGHT, rooms.SIGHT]
    colours = [rooms.RED, rooms.YELLOW, rooms.AGENT, rooms.AGENT]
    np.testing.assert_array_equal(own_cell, rooms.COLOURS[colours])
    for colour, seen in ((rooms.RED, [1, 0, 0, 0]), (rooms.YELLOW, [1, 1, 0, 0])):
        shown = np.all(steps.observation == rooms.COLOURS[colour], axis=-1).sum(axis=(1, 2))
        assert shown.tolist() == seen


@pytest.mark.parametrize("time", [FIRST_DOOR, SECOND_DOOR])
@pytest.mark.parametrize("held", [(False, False), (True, False), (False, True), (True, True)])
def test_each_key_is_good_for_its_own_door(time, held):
    env = TwoSites()
    opens = held[0] if time == FIRST_DOOR else held[1]
    steps = follow(env, arrange(env, time=time, position=place(3, 5), held=held), [UP] * 3)
    assert steps.events["door"].tolist() == [0, opens, 0]
    assert steps.events["success"].tolist() == [0, 0.5 * opens, 0]
    assert steps.reward.tolist() == [0, 5 * opens, 0]
    ends = opens and time == SECOND_DOOR
    assert steps.discount.tolist()[:2] == [1, 1 - ends]


def test_a_door_pays_once():
    env = TwoSites()
    state = arrange(env, time=FIRST_DOOR, position=place(3, 5), held=(True, True))
    steps = follow(env, state, [UP, UP, *[DOWN, UP] * 4])
    assert steps.reward.tolist() == [0, 5, *[0] * 8]
    assert not steps.step_type[:10].max() > 1


def test_what_the_agent_has_is_invisible():
    env = TwoSites()
    start = {"time": 15, "position": place(5, 5)}
    walk = [*np.random.default_rng(0).integers(0, 4, 30), UP]
    seen = [
        follow(env, arrange(env, **start, held=held), walk).observation
        for held in ((False, False), (True, True))
    ]
    np.testing.assert_array_equal(*seen)


def test_phases_are_the_rooms():
    env = TwoSites(key_steps=2, distractor_steps=3, door_steps=2)
    assert env.phases == (
        ("key room", 0), ("apple room", 2), ("door 1", 5), ("apple room", 7), ("door 2", 10)
    )  # fmt: skip
    assert env.max_episode_steps == 12


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"key_steps": 0}, "key_steps=0"),
        ({"distractor_steps": 0}, "distractor_steps=0"),
        ({"door_steps": 1}, "door_steps=1"),
        ({"apples": 23}, "apples=23 do not fit"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        TwoSites(**parameters)
