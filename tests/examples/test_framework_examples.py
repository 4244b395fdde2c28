"""The example agents of other frameworks and kinds learn with synthetic returns, and only so."""

import argparse
import functools
import importlib
import sys
from pathlib import Path

import jax
import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture
def load(monkeypatch):
    """Imports an example; they import from each other, as scripts in one folder do."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if (EXAMPLES / f"{name}.py").exists():
            del sys.modules[name]


@pytest.mark.parametrize(("name", "library"), [("flax_nnx", "flax"), ("dm_haiku", "haiku")])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the libraries themselves
def test_frameworks(load, name, library):
    pytest.importorskip(
        library, reason="needs the extra: pip install 'synthetic-returns[examples]'"
    )
    example = load(name)
    train = functools.partial(example.train, network=example.network)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        # Both call the training that add_to_your_agent.py defines, whose own test is of learning.
        assert 0 <= train(use_sr=True, steps=20_000) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), [("flax_nnx", "flax"), ("dm_haiku", "haiku")])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_frameworks_learn(load, name, library):
    pytest.importorskip(
        library, reason="needs the extra: pip install 'synthetic-returns[examples]'"
    )
    example = load(name)
    train = functools.partial(example.train, network=example.network)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        assert train(use_sr=True, steps=200_000) > 0.9
        assert train(use_sr=False, steps=50_000) < 0.1


def test_a_value_learner(load):
    with jax.numpy_dtype_promotion("standard"):
        assert 0 <= load("q_learning").train(use_sr=True, steps=5_000) <= 1


@pytest.mark.slow
def test_a_value_learner_learns(load):
    example = load("q_learning")
    with jax.numpy_dtype_promotion("standard"):
        assert example.train(use_sr=True, steps=200_000) > 0.8
        assert example.train(use_sr=False, steps=200_000) < 0.5


@pytest.mark.slow
def test_one_line_changes_the_single_file_agent(load):
    torch = pytest.importorskip(
        "torch", reason="needs the extra: pip install 'synthetic-returns[sb3]'"
    )
    torch.set_num_threads(1)
    lines = (EXAMPLES / "cleanrl_ppo.py").read_text().splitlines()
    assert sum("# the one line" in line for line in lines) == 1
    example = load("cleanrl_ppo")
    settings = {"runs": 1, "steps": 5 * example.ENVS * example.STEPS, "seed": 0}
    for no_sr in (False, True):
        rows = example.train(argparse.Namespace(no_sr=no_sr, **settings))
        assert [row["env_steps"] for row in rows] == [10_240]
        assert all(0 <= row["success"] <= 1 for row in rows)


def test_one_line_changes_the_single_file_value_learner(load, monkeypatch):
    pytest.importorskip(
        "stable_baselines3", reason="needs the extra: pip install 'synthetic-returns[sb3]'"
    )
    importlib.import_module("torch").set_num_threads(1)
    lines = (EXAMPLES / "cleanrl_dqn.py").read_text().splitlines()
    assert sum("# the one line" in line for line in lines) == 1
    example = load("cleanrl_dqn")
    monkeypatch.setattr(example, "STARTS", 400)  # steps before it learns
    for no_sr in (False, True):
        args = argparse.Namespace(no_sr=no_sr, runs=1, steps=800, seed=0)
        rows = example.train(args, rows=2)
        assert [row["env_steps"] for row in rows] == [400, 800]
        assert all(0 <= row["episode_return"] <= 1 for row in rows)


def test_one_line_changes_the_single_file_actor_critic(load):
    pytest.importorskip(
        "stable_baselines3", reason="needs the extra: pip install 'synthetic-returns[sb3]'"
    )
    importlib.import_module("torch").set_num_threads(1)
    lines = (EXAMPLES / "cleanrl_sac.py").read_text().splitlines()
    assert sum("# the one line" in line for line in lines) == 1
    example = load("cleanrl_sac")
    for no_sr in (False, True):
        args = argparse.Namespace(no_sr=no_sr, env="Pendulum-v1", steps=400, seed=0)
        rows = example.train(args, rows=2, starts=380)
        assert [row["env_steps"] for row in rows] == [200, 400]
        assert all(-2000 < row["episode_return"] < 0 for row in rows)
