"""Datasets that Minari wrote are read, by folder and by id."""

import argparse

import gymnasium
import numpy as np
import pytest

from synthetic_returns.logs.dataset import find_logs
from synthetic_returns.logs.explaining import explain_log
from synthetic_returns.recorded.credit import Credit
from synthetic_returns.utils.files import RunError
from tests.examples.test_framework_examples import load  # noqa: F401  # a fixture
from tests.recorded.test_credit import ADVANCE

minari = pytest.importorskip("minari", reason="needs: pip install 'synthetic-returns[minari]'")
pytest.importorskip("h5py", reason="needs: pip install 'synthetic-returns[minari]'")

NAME = "ours/cartpole/random-v0"


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "sets"))
    env = minari.DataCollector(gymnasium.make("CartPole-v1"))
    env.action_space.seed(0)
    returns = []
    for seed in range(12):
        env.reset(seed=seed)
        over, total = False, 0.0
        while not over:
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            over, total = terminated or truncated, total + float(reward)
        returns.append(total)
    # Without these Minari warns that nobody knows who wrote it.
    env.create_dataset(NAME, algorithm_name="random", author="us", author_email="a@b.c",
                       code_permalink="https://example.org", description="random")  # fmt: skip
    return tmp_path, returns


@pytest.mark.filterwarnings("ignore")
def test_it_is_read_and_explained(recorded):
    folder, returns = recorded
    for data in (NAME, folder / "sets" / NAME):
        (log,) = find_logs(data)
        episodes = list(log.episodes())
        assert [e["rewards"].sum() for e in episodes] == returns
        assert all(len(e["observations"]) == len(e["rewards"]) + 1 for e in episodes)
    page = explain_log(NAME, folder / "out", Credit(ADVANCE, updates=20), progress=lambda *_: None)
    assert page.exists()
    with np.load(folder / "out" / "rewards" / "ours-cartpole-random-v0.npz") as archive:
        paid = np.split(archive["rewards"], np.cumsum(archive["lengths"])[:-1])
    np.testing.assert_allclose([x.sum() for x in paid], returns, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_one_that_is_not_there(recorded):
    with pytest.raises(RunError, match=r"Minari cannot open ours/nothing-v0 .*minari download"):
        list(find_logs("ours/nothing-v0")[0].episodes())


@pytest.mark.filterwarnings("ignore")
def test_the_example_records_one(load, tmp_path, monkeypatch):  # noqa: F811
    pytest.importorskip("stable_baselines3", reason="pip install 'synthetic-returns[sb3]'")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    args = argparse.Namespace(env="Pendulum-v1", steps=200, parts=1, episodes=4, seed=0)
    name = load("record_minari").record(args)
    (log,) = find_logs(name)
    episodes = list(log.episodes())
    assert len(episodes) == 4
    for episode in episodes:
        assert episode["rewards"].shape == (200,)
        assert np.flatnonzero(episode["rewards"]).tolist() == [199]
