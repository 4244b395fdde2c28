"""The transform of TorchRL's replay buffers; `make test-slow` runs it in a virtualenv."""

import argparse
import sys
from typing import Any

import numpy as np
import pytest

from tests.examples.test_framework_examples import EXAMPLES
from tests.wrappers.made_up import ADVANCE, made_up_episode, wanted

torchrl = pytest.importorskip(
    "torchrl", reason="needs the extra: pip install 'synthetic-returns[torchrl]'"
)
pytestmark = pytest.mark.filterwarnings("ignore")  # of the library itself
import torch  # noqa: E402
from tensordict import TensorDict  # noqa: E402  # pyright: ignore[reportMissingImports]
from torchrl.data import (  # noqa: E402  # pyright: ignore[reportMissingImports]
    LazyTensorStorage,
    ListStorage,
    TensorDictReplayBuffer,
)
from torchrl.envs import GymEnv, TransformedEnv  # noqa: E402  # pyright: ignore

import synthetic_returns as sr  # noqa: E402

LENGTHS = (5, 3, 8, 1, 6, 4)
EPISODES = {n: made_up_episode(n, steps) for n, steps in enumerate(LENGTHS * 4)}


def make_buffer(size: int = 1000, **env_settings: Any) -> Any:
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(size), batch_size=64)
    env = GymEnv("CartPole-v1", **env_settings)  # 4 numbers, 2 actions
    buffer.append_transform(
        sr.CreditTransform(env, buffer.storage, method=ADVANCE, max_episode_steps=8, learn_every=4)
    )
    return buffer


def as_data(numbers: list[int], one_hot: bool = True, names: bool = True) -> Any:
    """Steps of episodes side by side in time, as a collector of several environments has them."""
    places = [(n, t) for t in range(8) for n in numbers if t < len(EPISODES[n])]

    def column(name: str) -> Any:
        values = [getattr(EPISODES[n], name)[t] for n, t in places]
        return torch.tensor(np.array(values))

    done = torch.tensor([[t == len(EPISODES[n]) - 1] for n, t in places])
    action = column("action")
    after = {"observation": column("arrived"), "reward": column("reward")[:, None]}
    data: dict[str, Any] = {
        "observation": column("observation"),
        "action": torch.nn.functional.one_hot(action, 2) if one_hot else action,
        "next": after | {"done": done, "terminated": done, "truncated": done & False},
    }
    if names:
        data["collector"] = {"traj_ids": torch.tensor([n for n, _ in places])}
    return TensorDict(data, [len(places)])


@pytest.fixture(scope="module")
def filled() -> Any:
    buffer = make_buffer()
    for start in range(0, 24, 3):
        data = as_data([start, start + 1, start + 2])
        cut = len(data) // 2  # in the middle of episodes
        buffer.extend(data[:cut])
        buffer.extend(data[cut:])
    buffer.transform[0].freeze()
    return buffer


def test_what_is_sampled_is_what_the_method_says_now(filled):
    credit = filled.transform[0]
    assert credit.report()["episodes"] == 24
    assert credit.report()["true_return"] == pytest.approx(
        np.mean([e.reward.sum() for e in EPISODES.values()]), abs=1e-4
    )
    expected = {
        tuple(state.tolist()): (paid, true)
        for episode in EPISODES.values()
        for state, paid, true in zip(
            episode.observation, wanted(credit.credit, episode), episode.reward, strict=True
        )
    }
    batch = filled.sample(300)
    for state, paid, true in zip(
        batch["observation"], batch["next", "reward"], batch["next", "true_reward"], strict=True
    ):
        assert (float(paid), float(true)) == pytest.approx(
            expected[tuple(state.tolist())], abs=1e-3
        )
    assert (batch["next", "reward"] - batch["next", "true_reward"]).abs().max() > 0.01
    stored = filled.storage[:]["next", "reward"].sum()  # true rewards stay what they were
    assert float(stored) == pytest.approx(sum(e.reward.sum() for e in EPISODES.values()), abs=1e-3)


def test_steps_that_were_overwritten_are_not_settled():
    buffer = make_buffer(size=6)
    for number in (0, 1, 2):
        buffer.extend(as_data([number], names=False))  # the last, of 8 steps, has lost two
    credit = buffer.transform[0]
    paid = wanted(credit.credit, EPISODES[2], held=2)
    batch = buffer.sample(100)
    last = batch[batch["next", "done"][:, 0]]
    assert len(last)
    np.testing.assert_allclose(last["next", "reward"][:, 0].numpy(), paid[-1], atol=1e-3)


def test_it_is_saved_with_the_buffer(filled):
    other = make_buffer()
    other.extend(as_data([0]))
    other.load_state_dict(filled.state_dict())
    rows = torch.arange(40)
    before, after = (
        buffer.transform(buffer.storage[rows].clone())["next", "reward"]
        for buffer in (filled, other)
    )
    torch.testing.assert_close(before, after)
    new = other.transform[0]._pieces.add("new", EPISODES[0])
    assert new.episode.number == 24  # no name of an episode is given twice


def test_numbers_of_actions_are_taken_too():
    buffer = make_buffer(categorical_action_encoding=True)
    buffer.extend(as_data([0, 1], one_hot=False))
    assert buffer.sample()["next", "reward"].shape == (64, 1)


def test_what_cannot_be_is_refused():
    env = GymEnv("CartPole-v1")
    storage = LazyTensorStorage(10)
    with pytest.raises(ValueError, match=r"belongs to a replay buffer.*append_transform"):
        TransformedEnv(env, sr.CreditTransform(env, storage, method=ADVANCE))
    with pytest.raises(ValueError, match=r"ListStorage.*LazyTensorStorage"):
        sr.CreditTransform(env, ListStorage(10))
    with pytest.raises(ValueError, match=r"batch size \[2, 4\].*reshape\(-1\)"):
        make_buffer().extend(as_data([2]).reshape(2, 4))


@pytest.mark.parametrize("no_sr", [False, True])
def test_the_example(monkeypatch, no_sr):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import torchrl_dqn  # pyright: ignore[reportMissingImports]

    lines = (EXAMPLES / "torchrl_dqn.py").read_text().splitlines()
    assert sum("# the one line" in line for line in lines) == 1
    rows = torchrl_dqn.train(argparse.Namespace(no_sr=no_sr, runs=1, steps=2_400, seed=0), rows=2)
    assert [row["env_steps"] for row in rows] == [1_200, 2_400]
    assert all(0 <= row["episode_return"] <= 1 for row in rows)
    sys.modules.pop("torchrl_dqn")
