"""Agents on MuJoCo's tasks; `make test-slow` runs it in a virtualenv."""

import argparse

import gymnasium
import numpy as np
import pytest

from tests.examples.test_framework_examples import load  # noqa: F401  # a fixture

pytest.importorskip("mujoco", reason="needs the extra: pip install 'synthetic-returns[mujoco]'")
pytest.importorskip("stable_baselines3", reason="pip install 'synthetic-returns[sb3]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the library itself


@pytest.mark.parametrize("name", ["Hopper-v5", "HalfCheetah-v5"])
def test_it_steps(name):
    env = gymnasium.make(name)
    env.reset(seed=0)
    env.action_space.seed(0)
    observation, reward, *_ = env.step(env.action_space.sample())
    assert observation.shape == env.observation_space.shape
    assert np.isfinite(reward)  # pyright: ignore


def test_the_single_file_agent(load):  # noqa: F811
    example = load("cleanrl_sac")
    args = argparse.Namespace(no_sr=False, env="Hopper-v5", steps=400, seed=0)
    rows = example.train(args, rows=2, starts=360)
    assert rows[-1]["env_steps"] == 400
