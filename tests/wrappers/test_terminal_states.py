"""Recorded episodes end with their true terminal state, however the environment starts the next."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from synthetic_returns.wrappers.vector import SyntheticReturnsVectorWrapper
from tests.wrappers.planned import Known, PlannedEnv, assert_recorded

PLANS = [[(3, False), (2, True)], [(4, True), (1, False)]]
STEPS = 12


class Composed(gymnasium.ObservationWrapper):
    """Shows the state in a dictionary, beside something that is of no interest."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Dict(
            {"state": env.observation_space, "noise": gymnasium.spaces.Discrete(3)}
        )

    def observation(self, observation):
        return {"state": observation, "noise": 1}


def rows(composed) -> Any:
    def make(row, plan):
        env = PlannedEnv(row, plan)
        return Composed(env) if composed else env

    return [lambda row=row, plan=plan: make(row, plan) for row, plan in enumerate(PLANS)]


def settings(composed) -> Any:
    settings = {"method": Known(), "max_episode_steps": 5, "learn_every": 1}
    if composed:
        settings["observation_fn"] = lambda observation: observation["state"]
    return settings


COMPOSED = pytest.mark.parametrize("composed", [False, True], ids=["box", "dict"])


@COMPOSED
@pytest.mark.parametrize("mode", AutoresetMode)
def test_gymnasium(mode, composed):
    env = SyncVectorEnv(rows(composed), autoreset_mode=mode)
    env = SyntheticReturnsVectorWrapper(env, **settings(composed))
    env.reset(seed=0)
    finished = np.zeros(2, int)
    for _ in range(STEPS):
        _, _, terminated, truncated, _ = env.step(np.zeros(2, int))
        over = terminated | truncated
        finished += over
        if mode is AutoresetMode.DISABLED and over.any():
            env.reset(options={"reset_mask": over.copy()})
    assert np.all(finished >= 3)
    assert_recorded(env.recent_episodes(), PLANS, finished.tolist())


@COMPOSED
def test_stable_baselines3(composed):
    vec_env = pytest.importorskip(
        "stable_baselines3.common.vec_env",
        reason="needs the extra: pip install 'synthetic-returns[sb3]'",
    )
    from synthetic_returns.wrappers.sb3 import SyntheticReturnsVecEnv

    env = SyntheticReturnsVecEnv(vec_env.DummyVecEnv(rows(composed)), **settings(composed))
    env.reset()
    finished = np.zeros(2, int)
    for _ in range(STEPS):
        _, _, done, _ = env.step(np.zeros(2, int))
        finished += done
    assert_recorded(env.recent_episodes(), PLANS, finished.tolist())


class Silent(gymnasium.vector.VectorWrapper):
    """Starts the next episode in the last step of one, and does not show how that ended."""

    def step(self, actions):
        *outcome, info = self.env.step(actions)
        hidden = ("final_obs", "_final_obs", "final_info", "_final_info")
        return *outcome, {name: x for name, x in info.items() if name not in hidden}


def test_an_end_that_is_not_shown_is_not_the_next_beginning():
    env = SyncVectorEnv(rows(False), autoreset_mode=AutoresetMode.SAME_STEP)
    env = SyntheticReturnsVectorWrapper(Silent(env), **settings(False))
    env.reset(seed=0)
    for _ in range(4):
        env.step(np.zeros(2, int))
    for episode, length in zip(env.recent_episodes(), (3, 4), strict=True):
        np.testing.assert_array_equal(episode.observation[:, 1], 0)  # all of the first episode
        np.testing.assert_array_equal(episode.observation[:, 2], [*range(length), length - 1])


class Both(PlannedEnv):
    """Says of its last step that it ends the episode and that time is up."""

    def step(self, action):
        observation, reward, terminated, _, info = super().step(action)
        return observation, reward, terminated, terminated, info


def test_an_end_at_the_time_limit_is_an_end():
    env = SyncVectorEnv([lambda: Both(0, [(3, False)])])
    env = SyntheticReturnsVectorWrapper(env, **settings(False))
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.zeros(1, int))
    np.testing.assert_array_equal(env.recent_episodes()[0].discount, [1, 1, 0])
