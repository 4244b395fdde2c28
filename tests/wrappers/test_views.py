"""A method in a wrapper sees what the view shows: a crop, every n-th state, other last rewards."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from jaxtyping import Array

from synthetic_returns.credit.view import View
from synthetic_returns.wrappers.stream import StreamCredit
from synthetic_returns.wrappers.vector import SyntheticReturnsVectorWrapper
from tests.wrappers.planned import Known, PlannedEnv, state
from tests.wrappers.small import METHOD


class Images(gymnasium.Env):
    """Every pixel tells its row, its column and the time; episodes of five steps."""

    def __init__(self):
        self.observation_space = spaces.Box(0, 255, (6, 8, 2), np.uint8)
        self.action_space = spaces.Discrete(2)

    def _show(self):
        row, column, time = np.meshgrid(np.arange(6), np.arange(8), [self.time] * 2, indexing="ij")
        return (36 * row + 4 * column + time).astype(np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._show(), {}

    def step(self, action):
        self.time += 1
        return self._show(), float(self.time), self.time == 5, False, {}


def play(view, steps, make: Callable[[], gymnasium.Env] = Images, **settings):
    env = gymnasium.vector.SyncVectorEnv([make] * 2)
    settings = {"method": METHOD, "max_episode_steps": 5, "learn_every": 2} | settings
    env = SyntheticReturnsVectorWrapper(env, view=view, **settings)
    env.reset(seed=0)
    infos = [env.step(np.zeros(2, int))[4] for _ in range(steps)]
    return env, infos


def test_a_crop():
    env, infos = play(View(rows=(1, 3), columns=(2, 7)), 20)
    episode = env.recent_episodes()[-1]
    assert episode.observation.shape == (6, 2, 5, 2)
    assert episode.observation[4, 0, 0, 0] == 36 * 1 + 4 * 2 + 4
    assert env.explain(episode).paid.shape == (6,)
    assert np.all(np.isfinite([info["synthetic_return"] for info in infos]))
    assert env.report()["episodes"] == 6


def test_changes():
    env, _ = play(View(rows=(0, 4), changes=True), 20)
    assert env.explain(env.recent_episodes()[-1]).paid.shape == (6,)


class OneFrame(eqx.Module):
    """An encoder that knows what it is to see."""

    weight: Array

    def __call__(self, observation):
        assert observation.shape[-3:] == (6, 8, 1)
        assert observation.dtype == jnp.float32
        return jnp.reshape(observation, (*observation.shape[:-3], -1)) @ self.weight


def test_an_encoder_of_ones_own_sees_changes():
    env, infos = play(View(changes=True), 20, encoder=OneFrame(jnp.ones((48, 3))))
    assert env.report()["episodes"] == 6
    assert np.all(np.isfinite([info["synthetic_return"] for info in infos]))


@pytest.mark.parametrize(("high", "changes"), [(255, True), (255, False), (1, True)])
def test_bytes_are_brought_to_about_one(high, changes):
    space = spaces.Box(0, high, (2, 2, 2), np.uint8)
    credit = StreamCredit(
        space, spaces.Discrete(2), 1, view=View(changes=changes), method=METHOD, max_episode_steps=5
    )
    encoder: Any = credit.driver.state.model.encoder
    image = np.zeros((1, 2, 2, 2), np.uint8)
    image[..., -1] = high
    seen = jnp.asarray(credit.driver.view.seen(image), jnp.float32)
    assert float(jnp.max(seen * encoder.scale)) == pytest.approx(1)


@pytest.mark.parametrize(("length", "kept"), [(5, [0, 2, 4, 5]), (4, [0, 2, 4]), (1, [0, 1])])
def test_a_stride(length, kept):
    env, infos = play(
        View(stride=2), length, lambda: PlannedEnv(0, [(length, False)]), method=Known()
    )
    episode = env.recent_episodes()[0]
    np.testing.assert_array_equal(episode.observation, [state(0, 0, time) for time in kept])
    times = np.split(np.arange(1, length + 1), np.arange(2, length, 2))
    np.testing.assert_array_equal(episode.reward, [np.sum(100 + some) for some in times])
    np.testing.assert_array_equal(episode.discount, [*[1] * (len(kept) - 2), 0])
    assert (len(episode), episode.stride) == (len(kept) - 1, 2)
    # Every state earns its part of the credit, those that are left out of the episodes too.
    earned = [info["synthetic_return"][0] for info in infos]
    np.testing.assert_allclose(earned, [*(0.125 * np.arange(1, length)), 0])


def test_it_learns_with_a_stride():
    env, _ = play(View(stride=2), 40)
    assert env.report()["episodes"] == 12
    assert env.explain(env.recent_episodes()[-1]).paid.shape == (4,)


@pytest.mark.parametrize(("cut_off", "last"), [(True, -7), (False, 103)])
def test_the_last_reward_of_what_was_cut_off(cut_off, last):
    env, infos = play(
        View(truncated_reward=-7.0), 3, lambda: PlannedEnv(0, [(3, cut_off)]), method=Known()
    )
    np.testing.assert_array_equal(env.recent_episodes()[0].reward, [101, 102, last])
    np.testing.assert_array_equal(infos[-1]["true_reward"], [103, 103])  # the agent's is its own


def test_channels_first_cannot_be_cropped():
    space = spaces.Box(0, 255, (4, 84, 84), np.uint8)
    with pytest.raises(ValueError, match=r"channels first; .*move the axis in observation_fn"):
        StreamCredit(space, spaces.Discrete(2), 2, view=View(rows=(0, 40)))
