"""The methods of actions, pairs and attention at work: on engines, in wrappers, in the viewer."""

import dataclasses
from typing import Any

import gymnasium
import numpy as np
import pytest

from synthetic_returns import SyntheticReturnsVectorWrapper
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.hindsight_actions.cocoa import Cocoa
from synthetic_returns.credit.hindsight_actions.hca import Hca
from synthetic_returns.credit.pairwise.method import Pairwise, SaAlone
from synthetic_returns.credit.secret import Secret
from synthetic_returns.credit.tvt.method import Tvt
from synthetic_returns.engines.engine import make_engine
from synthetic_returns.engines.settings import FusedSettings, LocalSettings
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.training.checkpoints import Checkpoints
from synthetic_returns.training.trainer import train
from synthetic_returns.viewer.view_run import record_run, write_run_view
from tests.credit.known_contributions import episode_of, make_learner
from tests.small import UPDATE, small_config
from tests.trees import arrays

SMALL: Any = {
    "encoder": TorsoSettings(sizes=(8,)),
    "replay": Replay(slots=16, batch_size=4, updates_per_episode=0.5),
}
METHODS = [
    Cocoa(objects="features", **SMALL),
    Hca(condition="state", **SMALL),
    Pairwise(form="plain", head_sizes=(8,), **SMALL),
    SaAlone(**SMALL),
    Secret(width=8, **SMALL),
    Tvt(code=8, horizon=0, threshold=0.0, **SMALL),
]
EACH = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


def config_with(method, engine, **settings):
    return small_config("episodic", {"credit": method, "engine": engine, **settings})


@EACH
def test_it_trains_on_the_local_engine(method):
    engine = LocalSettings(actors=0, num_envs=4, unroll_length=5)
    running = make_engine(config_with(method, engine), [0])
    for _ in range(12):
        running.step()
    report = running.report()[0]
    running.close()
    assert report["credit/buffer_episodes"] > 5
    assert np.isfinite(report["loss/total"])


@pytest.mark.parametrize(
    ("method", "engine"),
    [(METHODS[1], FusedSettings()), (METHODS[4], LocalSettings(actors=0))],
    ids=["fused", "local"],
)
def test_a_stopped_run_goes_on_with_the_unrolls_that_waited(method, engine, tmp_path):
    config = config_with(method, dataclasses.replace(engine, num_envs=4, unroll_length=3))
    whole, resumed = (make_engine(config, [0]) for _ in range(2))
    for _ in range(4):
        whole.step()
    snapshot = whole.snapshot(0)
    assert len(snapshot["credit"]["held"].items) == 1
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, snapshot)
    resumed.restore([checkpoints.restore(resumed.snapshot(0))[1]])
    for _ in range(3):
        whole.step()
        resumed.step()
    want, got = arrays(whole.snapshot(0)), arrays(resumed.snapshot(0))
    whole.close()
    resumed.close()
    assert want.keys() == got.keys()
    for name, array in want.items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)


@EACH
def test_it_trains_on_the_fused_engine_and_is_viewed(method, tmp_path):
    run = train(config_with(method, FusedSettings(num_envs=4, unroll_length=5), steps=6 * UPDATE,
                            **{"reporting.traces": 1}), out=tmp_path / "run")  # fmt: skip
    metrics = run.read_metrics()
    assert metrics["credit/buffer_episodes"][-1] > 5
    assert np.isfinite(metrics["loss/total"][-1])
    recorded = record_run(run.path, 2)
    terms: Any = recorded.recordings[0].terms
    assert "pairs" in terms
    assert terms["pairs"].values.shape == (6, 6)
    page = write_run_view(recorded, tmp_path / "view.html").read_text()
    assert terms["pairs"].label in page


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cocoa", "'cocoa' gives an advantage for each action; a wrapper can change rewards only"),
        ("hca", "'hca' gives an advantage for each action; a wrapper can change rewards only"),
        ("sa-alone", "'sa-alone' gives an advantage for each action; a wrapper can change"),
        ("secret", "'secret' needs complete episodes; a wrapper has to pay at every step"),
        ("tvt", "'tvt' needs complete episodes; a wrapper has to pay at every step"),
    ],
)
def test_what_cannot_pay_at_every_step_is_refused_in_wrappers(name, reason):
    envs = gymnasium.make_vec("synthetic_returns/Chain-v0", num_envs=2)
    with pytest.raises(ValueError, match=reason):
        SyntheticReturnsVectorWrapper(envs, method=name)


def test_pairs_pay_in_a_wrapper():
    envs = gymnasium.make_vec("synthetic_returns/Chain-v0", num_envs=3, length=5, trigger=2,
                              free_moves=3)  # fmt: skip
    wrapped = SyntheticReturnsVectorWrapper(envs, method=Pairwise(**SMALL), learn_every=1)
    wrapped.reset(seed=0)
    paid = []
    for _ in range(60):
        *_, info = wrapped.step(np.ones(3, int))  # to the trigger
        paid.append(info["synthetic_return"])
    assert np.any(paid)


@pytest.mark.parametrize("method", METHODS[:2], ids=lambda method: method.name)
def test_actions_that_are_not_numbered_are_refused(method):
    with pytest.raises(ValueError, match="needs the agent's probabilities and values, which are"):
        make_learner(method)


def test_a_reward_that_is_no_number_is_refused():
    driver: CreditDriver = make_learner(Pairwise(**SMALL))
    episode = episode_of(np.eye(4, dtype=np.float32), [0, np.nan, 0, 1])
    with pytest.raises(ValueError, match="reward of step 1 of an episode of 4 steps is nan; rew"):
        driver.learn([episode])
