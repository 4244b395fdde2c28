import jax
import numpy as np
import pytest

from synthetic_returns.envs.dense import Dense
from tests.envs.playing import arrange, follow


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_observation_and_reward_against_plain_loops(seed):
    env = Dense(length=30, cells=7, reach=3, stretch=4, step_reward=0.5)
    actions = np.random.default_rng(seed).integers(0, 3, 30)
    state, first = env.reset(jax.random.key(seed))
    turns = np.asarray(state.turns)
    steps = follow(env, state, actions)
    pointer = target = 3
    np.testing.assert_allclose(first.observation[:2], 0.5)
    earned = []
    for t, action in enumerate(actions):
        direction = turns[t // 4]
        if not 0 <= target + direction < 7:
            direction = -direction
        target += direction
        pointer = min(max(pointer + action - 1, 0), 6)
        earned.append(0.5 * max(0, 1 - abs(pointer - target) / 3))
        np.testing.assert_allclose(steps.observation[t, :2], [pointer / 6, target / 6], rtol=1e-6)
    assert len({round(x, 3) for x in earned}) == 4  # every distance within reach, and beyond
    assert not steps.reward[:-1].any()
    assert steps.reward[-1] == pytest.approx(sum(earned), rel=1e-5)
    assert steps.events["success"][-1] == pytest.approx(sum(earned) / 0.5 / 30, rel=1e-5)
    assert steps.discount.tolist() == [1] * 29 + [0]


def test_the_direction_is_shown_before_the_target_goes_there():
    env = Dense(length=40)
    steps = follow(env, env.reset(jax.random.key(1))[0], [1] * 40)
    _, target, direction = steps.observation.T
    moved = np.round(np.diff(target) * 10)
    np.testing.assert_array_equal(moved, np.round(2 * direction[:-1] - 1))
    assert set(moved) == {-1, 0, 1}


def test_the_target_turns_back_at_the_ends():
    env = Dense(length=8)
    steps = follow(env, arrange(env, target=0, turns=[-1, -1]), [1] * 4)
    assert np.round(steps.observation[:, 1] * 10).tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"length": 0}, "length=0"),
        ({"reach": 0}, "reach=0"),
        ({"stretch": 0}, "stretch=0"),
        ({"cells": 1}, "cells=1"),
        ({"step_reward": 0.0}, "step_reward=0.0 is not allowed: use a number above 0"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        Dense(**parameters)
