import numpy as np
import pytest

from synthetic_returns.envs.balance import Balance
from tests.envs.playing import arrange, follow, play, random_policy

LEFT, NOTHING, RIGHT = range(3)


def test_the_pole_by_hand():
    env = Balance(length=6, limit=4, top_speed=2)
    gusts = [0, 1, 0, -1, 1, 0]
    steps = follow(env, arrange(env, gusts=gusts), [RIGHT, NOTHING, NOTHING, LEFT, NOTHING])
    lean, speed, gust = (2 * x - 1 for x in steps.observation.T)
    # Speeds 1, 2, 2 (not more), 0, 1: leans 1, 3, 5 and so the pole has fallen.
    assert (lean[:3] * 4).tolist() == [1, 3, 4]
    assert (speed * 2).tolist() == [1, 2, 2, 0, 1]
    assert gust.tolist() == gusts[1:]
    assert steps.events["fall"].tolist()[:3] == [0, 0, 1]
    # It stood after two steps.
    assert steps.reward.tolist()[:3] == [0, 0, pytest.approx(0.4)]
    assert steps.events["success"].tolist()[:3] == [0, 0, pytest.approx(2 / 6)]
    assert steps.discount.tolist()[:3] == [1, 1, 0]


def test_the_time_is_up_while_the_pole_stands():
    env = Balance(length=3)
    steps = follow(env, arrange(env, gusts=[0, 0, 0]), [NOTHING] * 3)
    assert steps.reward.tolist() == [0, 0, pytest.approx(0.6)]
    assert steps.events["success"].tolist() == [0, 0, 1]
    assert not steps.events["fall"].any()


def test_chance_lets_it_fall_early_and_pays_for_the_steps_before():
    played = play(Balance(), random_policy, seed=0, episodes=1000)
    assert played["fall"].mean() > 0.99
    assert 10 < played["length"].mean() < 30
    stood = played["length"] - played["fall"]
    np.testing.assert_allclose(played["return"], 0.2 * stood, rtol=1e-5)
    np.testing.assert_allclose(played["success"], stood / 100, rtol=1e-5)


@pytest.mark.parametrize("name", ["length", "limit", "top_speed"])
def test_bad_parameters_are_refused(name):
    with pytest.raises(ValueError, match=f"{name}=0"):
        Balance(**{name: 0})
