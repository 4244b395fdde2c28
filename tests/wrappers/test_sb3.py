"""The wrapper for Stable-Baselines3, under agents that know nothing of it."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from tests.wrappers.planned import (
    Known,
    PlannedEnv,
    assert_recorded,
    contribution,
    listen,
)
from tests.wrappers.small import METHOD

pytest.importorskip(
    "stable_baselines3", reason="needs the extra: pip install 'synthetic-returns[sb3]'"
)
contrib = pytest.importorskip(
    "sb3_contrib", reason="needs the extra: pip install 'synthetic-returns[sb3]'"
)
import torch  # noqa: E402
from stable_baselines3 import A2C, PPO  # noqa: E402
from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor  # noqa: E402

import synthetic_returns as sr  # noqa: E402

torch.set_num_threads(1)  # on a busy machine more threads wait for each other

ALPHA, BETA = 0.5, 2.0


def catch(**settings):
    envs = make_vec_env("synthetic_returns/CatchDelayed-v0", 2, seed=0, env_kwargs={"runs": 2})
    settings = {"method": METHOD, "max_episode_steps": 13, "learn_every": 2} | settings
    return sr.SyntheticReturnsVecEnv(envs, **settings)


def test_no_reward_is_lost_duplicated_or_moved(monkeypatch):
    plans = [[(3, False), (1, True)], [(4, True)], [(1, False), (5, False), (2, True)]]
    rows: Any = [lambda row=row, plan=plan: PlannedEnv(row, plan) for row, plan in enumerate(plans)]
    env = sr.SyntheticReturnsVecEnv(
        VecMonitor(DummyVecEnv(rows)),
        alpha=ALPHA, beta=BETA, method=Known(), max_episode_steps=5, learn_every=1,
    )  # fmt: skip
    heard = listen(env, monkeypatch)
    env.reset()
    finished, returns = np.zeros(3, int), np.zeros(3)
    for _ in range(40):
        step: Any = env.step(np.zeros(3, int))
        observation, augmented, done, infos = step
        c = np.where(done, 0, contribution(observation))
        true = np.array([info["true_reward"] for info in infos])
        returns += true
        np.testing.assert_array_equal([info["synthetic_return"] for info in infos], c)
        np.testing.assert_allclose(augmented, ALPHA * c + BETA * true, rtol=1e-6)
        for row in np.flatnonzero(done):
            assert infos[row]["episode"]["r"] == pytest.approx(returns[row])
            assert "terminal_observation" in infos[row]
            returns[row] = 0
        finished += done
    assert_recorded([*heard, *env.credit.driver.waiting], plans, finished.tolist())


def test_without_alpha_it_is_the_environment():
    plain = make_vec_env("synthetic_returns/CatchDelayed-v0", 2, seed=0, env_kwargs={"runs": 2})
    ours = catch(alpha=0.0, beta=1.0)
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(plain.reset(), ours.reset())
    for _ in range(60):
        action = rng.integers(0, 3, 2)
        expected: Any = plain.step(action)
        found: Any = ours.step(action)
        for a, b in zip(expected[:3], found[:3], strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype
        for a, b in zip(expected[3], found[3], strict=True):
            assert a.keys() <= b.keys()
            assert b["TimeLimit.truncated"] == a["TimeLimit.truncated"]


class Logged(BaseCallback):
    """Notes what is logged; an agent forgets it when it writes it out."""

    names: set[str] = frozenset()  # pyright: ignore

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        self.names = self.names | self.logger.name_to_value.keys()


AGENTS = {
    "PPO": lambda env: PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, device="cpu"),
    "A2C": lambda env: A2C("MlpPolicy", env, device="cpu"),
    "RecurrentPPO": lambda env: contrib.RecurrentPPO(
        "MlpLstmPolicy", env, n_steps=32, batch_size=32, n_epochs=1, device="cpu",
        policy_kwargs={"lstm_hidden_size": 8},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AGENTS)
def test_agents_use_it_unchanged(name):
    env = catch(alpha=1.0, beta=0.5)
    model = AGENTS[name](env)
    logged = Logged()
    model.learn(128, callback=[sr.SyntheticReturnsCallback(), logged])
    assert logged.names >= {"synthetic_returns/trust", "synthetic_returns/true_return"}
    assert env.report()["episodes"] >= 8
    # The returns that it logs come from the monitor inside: they are the true ones.
    returns = [info["r"] for info in model.ep_info_buffer]
    assert all(r == int(r) for r in returns)
    assert np.mean(returns) == pytest.approx(env.report()["true_return"])


def test_save_and_load(tmp_path):
    env = catch()
    AGENTS["A2C"](env).learn(64)
    env.save(tmp_path / "sr.npz")
    other = catch(seed=3)
    other.load(tmp_path / "sr.npz")
    assert other.report()["episodes"] == env.report()["episodes"] > 0
    episode = env.recent_episodes()[0]
    np.testing.assert_array_equal(other.explain(episode).paid, env.explain(episode).paid)


def test_dict_observations():
    class Dictionary(gymnasium.ObservationWrapper):
        def __init__(self, env):
            super().__init__(env)
            self.observation_space = gymnasium.spaces.Dict({"state": env.observation_space})

        def observation(self, observation):
            return {"state": observation}

    env = sr.SyntheticReturnsVecEnv(
        DummyVecEnv([lambda: Dictionary(PlannedEnv(0, [(3, False)]))]),
        observation_fn=lambda observation: observation["state"],
        method=METHOD,
        max_episode_steps=5,
    )
    env.reset()
    for _ in range(4):
        env.step(np.zeros(1, int))
    (episode,) = env.recent_episodes()
    np.testing.assert_array_equal(episode.observation[:, 2], [0, 1, 2, 3])
    np.testing.assert_array_equal(episode.discount, [1, 1, 0])


def test_the_time_limit_of_the_environment():
    envs = make_vec_env("CartPole-v1", 1)
    env = sr.SyntheticReturnsVecEnv(envs, method=METHOD)
    assert env.credit.driver.spec.max_steps == 500
