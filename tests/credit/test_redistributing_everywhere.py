"""The methods that redistribute returns: on our engines, in a wrapper, on the command line."""

import dataclasses
from typing import Any

import gymnasium
import numpy as np
import pytest

from synthetic_returns import SyntheticReturnsVectorWrapper
from synthetic_returns.commands.train import configuration
from synthetic_returns.config import Config
from synthetic_returns.credit.catalog import usable_in
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.redistribution.decomposition import Decomposition
from synthetic_returns.credit.redistribution.rrd import Rrd
from synthetic_returns.credit.redistribution.uniform import Uniform
from synthetic_returns.credit.rudder.method import Rudder
from synthetic_returns.engines.engine import make_engine
from synthetic_returns.engines.settings import FusedSettings, LocalSettings
from synthetic_returns.nn.settings import TorsoSettings
from tests.small import small_config

SMALL: Any = {
    "encoder": TorsoSettings(sizes=(8,)),
    "replay": Replay(slots=16, batch_size=4, updates_per_episode=1.0),
}
METHODS: list[Any] = [
    Rudder(lstm_size=4, gated=False, **SMALL),
    Decomposition(head_sizes=(8,), **SMALL),
    Rrd(head_sizes=(8,), subsequence=2, **SMALL),
    Uniform(head_sizes=(8,), **SMALL),
]
EACH = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


# What differs between engines is the same for all methods, so few meet both.
@pytest.mark.parametrize(
    ("method", "engine"),
    [
        (METHODS[0], FusedSettings()),
        (METHODS[0], LocalSettings(actors=0)),
        (METHODS[1], LocalSettings(actors=0)),
        (METHODS[2], FusedSettings()),
        (METHODS[3], LocalSettings(actors=0)),
    ],
    ids=lambda x: x.name,
)
def test_it_trains_on_engines(method, engine):
    engine = dataclasses.replace(engine, num_envs=4, unroll_length=5)
    engine = make_engine(small_config("episodic", {"credit": method, "engine": engine}), [0])
    for _ in range(12):
        engine.step()
    report = engine.report()[0]
    engine.close()
    assert report["credit/buffer_episodes"] > 5
    assert report["credit/error"] >= 0
    assert np.isfinite(report["loss/total"])


@EACH
def test_in_a_wrapper_every_episode_is_paid_its_return(method):
    envs = gymnasium.make_vec("synthetic_returns/Chain-v0", num_envs=3, length=5, trigger=2,
                              free_moves=3)  # fmt: skip
    envs = SyntheticReturnsVectorWrapper(envs, method=method, learn_every=1)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    paid, before_the_end, true = np.zeros(3), 0.0, 0
    for _ in range(90):
        _, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
        paid += reward
        over = terminated | truncated
        before_the_end += np.abs(reward[~over]).sum()
        won = np.asarray(info["success"], bool)
        np.testing.assert_allclose(paid[over], won[over].astype(float), atol=1e-4)
        true += won[over].sum()
        paid[over] = 0
    assert true > 0
    assert before_the_end > 0
    assert usable_in(type(method)) == "anywhere"


@EACH
def test_it_is_chosen_on_the_command_line(method):
    config = configuration(["chain", "--credit", method.name, "--credit.learning-rate", "0.01"])
    assert config.credit == type(method)(learning_rate=0.01)
    assert Config.from_dict(config.to_dict()) == config


def test_an_episode_that_is_too_long_for_the_lstm_is_refused_in_a_wrapper():
    envs = gymnasium.make_vec("synthetic_returns/Chain-v0", num_envs=3)
    with pytest.raises(
        ValueError, match=r"up to 5000 steps .* raise its setting max_episode_steps"
    ):
        SyntheticReturnsVectorWrapper(envs, method="rudder", max_episode_steps=5000)
