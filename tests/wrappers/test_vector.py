"""The wrapper around a vector environment: what passes through, and what it makes of it."""

import dataclasses
from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.utils.env_match import check_environments_match
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import synthetic_returns as sr
from synthetic_returns.envs.registry import register_with_gymnasium
from tests.wrappers.small import METHOD

register_with_gymnasium()

MODES = pytest.mark.parametrize("mode", AutoresetMode)


def catch(num_envs=3, mode=AutoresetMode.NEXT_STEP, **parameters):
    return gymnasium.make_vec(
        "synthetic_returns/CatchDelayed-v0",
        num_envs=num_envs,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        runs=2,
        **parameters,
    )


def wrap(env, **settings):
    settings = {"method": METHOD, "max_episode_steps": 13, "learn_every": 2} | settings
    return sr.SyntheticReturnsVectorWrapper(env, **settings)


def play(env, steps, seed=0):
    """Random actions; everything that came of them."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    return [env.step(rng.integers(0, 3, env.num_envs)) for _ in range(steps)]


class One(gymnasium.Env):
    """A vector environment of one, as the checker of Gymnasium wants it."""

    def __init__(self, env):
        self.env = env
        self.observation_space = env.single_observation_space
        self.action_space = env.single_action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        observation, _ = self.env.reset(seed=seed, options=options)
        return observation[0], {}

    def step(self, action):
        observation, reward, terminated, truncated, _ = self.env.step(np.array([action]))
        return observation[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}


@MODES
def test_passes_the_checker_of_gymnasium(mode):
    check_env(One(wrap(catch(1, mode), alpha=1.0, beta=0.5)), skip_render_check=True)


@MODES
def test_gymnasium_finds_it_identical_without_alpha(mode):
    env = wrap(catch(1, mode), alpha=0.0, beta=1.0, learn_every=1)
    check_environments_match(One(catch(1, mode)), One(env), 13, skip_render=True)
    assert env.report()["episodes"] == 1


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_without_alpha_it_is_the_environment(mode):
    """The learner learns all the while, and c is not 0; none of it shows."""
    env = wrap(catch(mode=mode), alpha=0.0, beta=1.0)
    plain = play(catch(mode=mode), 60)
    for a, b in zip(plain, play(env, 60), strict=True):
        assert data_equivalence(a[:4], b[:4])
        assert data_equivalence(a[4], {name: b[4][name] for name in a[4]})
    assert env.report()["episodes"] >= 8


def test_without_alpha_it_is_a_native_vector_environment():
    def native():
        return gymnasium.make_vec("synthetic_returns/KeyToDoor-v0", num_envs=2, key_steps=3)

    env = sr.SyntheticReturnsVectorWrapper(native(), alpha=0.0, beta=1.0, method=METHOD)
    for plain, ours in zip(play(native(), 100), play(env, 100), strict=True):
        for a, b in zip(plain[:4], ours[:4], strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype
        assert data_equivalence(plain[4], {name: ours[4][name] for name in plain[4]})


def test_statistics_inside_are_true():
    env = wrap(RecordEpisodeStatistics(catch()), alpha=3.0, beta=0.0)
    returns = np.zeros(3)
    seen = []
    for _, augmented, terminated, _, info in play(env, 60):
        returns += info["true_reward"]
        if terminated.any():
            np.testing.assert_array_equal(info["episode"]["r"][terminated], returns[terminated])
            seen += returns[terminated].tolist()
            returns[terminated] = 0
        assert not np.any(augmented[terminated])  # beta 0, and an end earns no c
    assert len(seen) >= 9
    assert env.report()["true_return"] == pytest.approx(np.mean(seen))


def test_rewards_are_augmented_once_something_is_learned():
    method = dataclasses.replace(METHOD, trust=False)  # a few episodes earn none
    env = wrap(catch(), alpha=2.0, beta=1.0, method=method)
    steps = play(env, 150)
    for _, augmented, _, _, info in steps:
        expected = 2.0 * info["synthetic_return"] + info["true_reward"]
        np.testing.assert_allclose(augmented, expected, rtol=1e-6)
    c = np.array([info["synthetic_return"] for *_, info in steps])
    assert np.abs(c[-13:]).max() > 0


def test_what_has_not_proved_itself_is_not_trusted():
    steps = play(wrap(catch()), 13)
    assert not any(info["synthetic_return"].any() for *_, info in steps)


def test_time_limit_of_the_environment():
    env = gymnasium.make_vec("CartPole-v1", num_envs=2)
    choices: Any = (({}, 500), ({"max_episode_steps": 77}, 77))
    for settings, steps in choices:
        wrapped = sr.SyntheticReturnsVectorWrapper(env, method=METHOD, **settings)
        assert wrapped.credit.driver.spec.max_steps == steps


def test_frozen_it_neither_learns_nor_records():
    env = wrap(catch(), learn_every=1)
    play(env, 40)
    seen, recent = env.report()["episodes"], len(env.recent_episodes())
    assert seen > 0
    env.freeze()  # in the middle of episodes, which are not recorded to their end
    for _ in range(14):
        env.step(np.zeros(3, int))
    assert len(env.recent_episodes()) == recent
    first = [info["synthetic_return"] for *_, info in play(env, 40)]
    again = [info["synthetic_return"] for *_, info in play(env, 40)]
    np.testing.assert_array_equal(first, again)
    assert env.report()["episodes"] == seen
    assert len(env.recent_episodes()) == recent

    env.unfreeze()  # in the middle of episodes, which therefore stay unknown
    rng = np.random.default_rng(0)
    for _ in range(13):
        env.step(rng.integers(0, 3, 3))
    assert len(env.recent_episodes()) == recent
    for _ in range(14):
        env.step(rng.integers(0, 3, 3))
    assert len(env.recent_episodes()) == recent + 3


def test_explain():
    env = wrap(catch(), alpha=1.0, beta=0.0)
    steps = play(env, 85)
    env.freeze()
    episode = env.recent_episodes()[-1]
    explained = env.explain(episode)
    assert list(explained.terms) == ["c", "g", "b", "r_hat"]
    assert all(term.values.shape == (14,) for term in explained.terms.values())
    g = explained.terms["g"].values
    assert np.all((g >= 0) & (g <= 1))
    # The same states met again earn what the explanation says.
    driver = env.credit.driver
    c = driver.method.of_states(driver.state, jnp.asarray(episode.observation))
    np.testing.assert_allclose(explained.paid[:-1], c[:-1], rtol=1e-5, atol=1e-7)
    assert explained.paid[-1] == 0  # the terminal state earns nothing, whatever the model says
    assert c[-1] != 0
    assert len(steps) == 85


def test_explain_refuses_other_observations():
    env = wrap(catch())
    episode = sr.Episode(
        np.zeros((5, 6), np.float32), np.zeros(4, np.float32), np.ones(4, np.float32)
    )
    with pytest.raises(ValueError, match=r"shape \(5, 6\).*recent_episodes"):
        env.explain(episode)


def test_explain_refuses_an_episode_without_its_terminal_state():
    env = wrap(catch())
    steps = np.zeros(4, np.float32)
    episode = sr.Episode(np.zeros((4, 7, 7, 1), np.float32), steps, steps)
    with pytest.raises(ValueError, match=r"shape \(4, 7, 7, 1\).*steps \+ 1.*here 4 steps"):
        env.explain(episode)
