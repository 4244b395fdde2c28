"""RLlib's callback; `make test-slow` runs it in a virtualenv."""

import argparse
import functools
import sys
import warnings
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

from tests.examples.test_framework_examples import EXAMPLES
from tests.wrappers.made_up import ADVANCE, Piece, made_up_episode, part, wanted

for needed in ("ray", "tree", "torch", "pyarrow"):
    pytest.importorskip(needed, reason="needs the extra: pip install 'synthetic-returns[rllib]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the library itself
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode  # noqa: E402
from ray.rllib.env.single_agent_episode import SingleAgentEpisode  # noqa: E402

import synthetic_returns as sr  # noqa: E402


class Logger(dict):
    def log_value(self, name: Any, value: float, window: int) -> None:
        self[name] = value


def runner(in_evaluation: bool = False) -> Any:
    env = gymnasium.make_vec("CartPole-v1", num_envs=1)
    return SimpleNamespace(env=env, config=SimpleNamespace(in_evaluation=in_evaluation))


def sampled(name: str, piece: Piece, start: int = 0, numpy: bool = True) -> Any:
    states = [*piece.observation, piece.arrived[-1]]
    one = SingleAgentEpisode(
        id_=name, observations=states, actions=list(piece.action),  # pyright: ignore
        rewards=[float(r) for r in piece.reward], terminated=piece.terminated,
        truncated=piece.ended and not piece.terminated, t_started=start, len_lookback_buffer=0,
        observation_space=gymnasium.spaces.Box(-np.inf, np.inf, (4,)),
        action_space=gymnasium.spaces.Discrete(2),
    )  # fmt: skip
    return one.to_numpy() if numpy else one


def make() -> Any:
    return sr.CreditCallback(method=ADVANCE, learn_every=4)


@pytest.mark.parametrize("numpy", [True, False])
def test_what_was_sampled_is_paid(numpy):
    callback, logger = make(), Logger()
    env_runner = runner()
    give = functools.partial(callback.on_sample_end, env_runner=env_runner, metrics_logger=logger)
    for number in range(12):
        give(samples=[sampled(str(number), made_up_episode(number, 5))])
    assert logger["synthetic_returns", "episodes"] == 12
    callback.freeze()
    assert callback.credit.driver.max_episode_steps == 500  # CartPole's time limit
    episode = made_up_episode(100, 5)
    chunks = [sampled("a", part(episode, 0, 3), numpy=numpy)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # users could do nothing about one
        give(samples=chunks)
    chunks.append(sampled("a", part(episode, 3, 5), start=3, numpy=numpy))
    give(samples=chunks[1:])
    paid = np.concatenate([np.asarray(chunk.get_rewards()) for chunk in chunks])
    np.testing.assert_allclose(paid, wanted(callback.credit, episode), rtol=1e-4, atol=1e-4)
    assert np.abs(paid - episode.reward).max() > 0.01
    returned = sum(chunk.get_return() for chunk in chunks)  # what RLlib reports
    assert returned == pytest.approx(episode.reward.sum(), abs=1e-4)


def test_evaluation_is_left_alone():
    callback = make()
    episode = sampled("a", made_up_episode(0, 5))
    before = np.array(episode.get_rewards())
    callback.on_sample_end(
        env_runner=runner(in_evaluation=True), metrics_logger=Logger(), samples=[episode]
    )
    np.testing.assert_array_equal(episode.get_rewards(), before)


def test_several_agents_are_refused():
    class Some(MultiAgentEpisode):
        def __len__(self) -> int:
            return 1

    with pytest.raises(ValueError, match=r"sampled a Some; credit is given to single agents"):
        make().on_sample_end(env_runner=runner(), metrics_logger=Logger(), samples=[Some()])


def test_the_example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "600")  # a busy machine takes its time
    import rllib_ppo  # pyright: ignore[reportMissingImports]

    lines = (EXAMPLES / "rllib_ppo.py").read_text().splitlines()
    assert sum("# the one line" in line for line in lines) == 1
    rows, credit = rllib_ppo.train(argparse.Namespace(no_sr=False, runs=1, steps=4_000, seed=0))
    assert [row["env_steps"] // 100 for row in rows] == [20, 40]
    assert 0 <= rows[-1]["episode_return"] <= 1  # the true one
    assert credit["episodes"] > 400
    sys.modules.pop("rllib_ppo")
