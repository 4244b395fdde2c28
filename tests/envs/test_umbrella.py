import jax
import numpy as np
import pytest

from synthetic_returns.envs.umbrella import Umbrella
from tests.envs.playing import arrange, follow, play, random_policy


@pytest.mark.parametrize("rain", [False, True])
@pytest.mark.parametrize("umbrella", [0, 1])
def test_only_the_first_action_decides(rain, umbrella):
    env = Umbrella(length=4, distractors=2)
    steps = follow(env, arrange(env, rain=rain), [umbrella, 1 - umbrella, 1 - umbrella, 1])
    right = rain == bool(umbrella)
    assert steps.reward[-1] == (1 if right else -1)
    assert set(np.abs(steps.reward[:-1])) == {1}
    assert steps.observation[:, 0].tolist() == [rain] * 4
    assert steps.observation[:, 1].tolist() == [umbrella] * 4
    assert steps.observation[:, 2].tolist() == [0.75, 0.5, 0.25, 0]
    assert steps.events["success"].tolist() == [0, 0, 0, right]
    assert steps.events["umbrella"].tolist() == [umbrella, 0, 0, 0]
    assert steps.discount.tolist() == [1, 1, 1, 0]


def test_noise_is_fresh_fair_and_can_be_left_out():
    env = Umbrella(length=200, distractors=50)
    steps = follow(env, env.reset(jax.random.key(1))[0], [0] * 200)
    noise = steps.observation[:, 3:]
    assert set(np.unique(noise)) == {0, 1}
    assert noise.mean() == pytest.approx(0.5, abs=4 * 0.5 / 100)
    assert steps.reward[:-1].mean() == pytest.approx(0, abs=4 / np.sqrt(199))
    assert len(np.unique(noise, axis=0)) == 200
    quiet = play(Umbrella(noise_reward=0.0), random_policy, seed=0, episodes=100)
    assert set(quiet["return"]) == {-1, 1}


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="length=0"):
        Umbrella(length=0)
    with pytest.raises(ValueError, match="distractors=-1"):
        Umbrella(distractors=-1)
