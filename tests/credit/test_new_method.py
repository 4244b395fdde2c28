"""A credit method that only this file knows: trained with on every engine, wrapped, and viewed."""

import dataclasses
from typing import Any, ClassVar

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns import SyntheticReturnsVectorWrapper
from synthetic_returns.cli import main
from synthetic_returns.commands.train import configuration
from synthetic_returns.config import Config
from synthetic_returns.credit import registry
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.method import Assignment, CreditMethod, Need
from synthetic_returns.credit.registry import find_method, register_method
from synthetic_returns.engines.engine import make_engine
from synthetic_returns.engines.settings import ClusterSettings, FusedSettings, LocalSettings
from synthetic_returns.training.trainer import train
from synthetic_returns.viewer.view_run import record_run, write_run_view
from tests.engines.fake_ray import FakeRay
from tests.small import UPDATE, small_config


# --- the method, all of it ---
@dataclasses.dataclass(frozen=True)
class Linear(CreditMethod):
    """The return as a sum over states, each of them worth a product with one vector."""

    name: ClassVar[str] = "linear"
    summary: ClassVar[str] = "a linear regression of the return on the states"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ACTIONS})
    replay: Replay = dataclasses.field(default=Replay(slots=16, batch_size=4))
    step_size: float = 0.05
    """Of the gradient descent."""

    def init(self, spec, key):
        return jnp.zeros(int(np.prod(spec.observation_shape)))

    def learn(self, state, episodes, key):
        time, batch = episodes.reward.shape
        states = jnp.where(episodes.valid[..., None], episodes.source.reshape(time, batch, -1), 0)
        error = jnp.sum(states @ state, axis=0) - jnp.sum(episodes.reward, axis=0)
        gradient = jnp.einsum("b,tbd->d", error, states) / batch
        return state - self.step_size * gradient, {"error": jnp.mean(jnp.square(error))}

    def assign(self, state, carry, segment):
        time, batch = segment.reward.shape
        worth = jnp.reshape(jnp.asarray(segment.arrived), (time, batch, -1)) @ state
        return Assignment(reward=worth), carry

    def explain(self, state, episodes):
        times, batch = episodes.observation.shape[:2]
        worth = episodes.observation.reshape(times, batch, -1) @ state
        return Explanation({"worth": Term(worth, "worth of a state")}, credit="worth")


# --- who knows of it: the registry, as long as a test runs ---
@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", {})
    register_method(Linear)


def config_with(engine: Any, **settings: Any) -> Config:
    return small_config("episodic", {"credit": Linear(), "engine": engine, **settings})


@pytest.mark.parametrize("engine", [FusedSettings(), LocalSettings(actors=0), ClusterSettings()])
def test_it_trains_on_every_engine(engine, monkeypatch):
    FakeRay().install(monkeypatch)
    engine = make_engine(config_with(dataclasses.replace(engine, num_envs=4, unroll_length=5)), [0])
    for _ in range(12):
        engine.step()
    report = engine.report()[0]
    credit: Any = engine.explainer(0)
    engine.close()
    assert report["credit/error"] >= 0
    assert report["credit/buffer_episodes"] > 5
    assert np.any(credit.state != 0)
    assert np.isfinite(report["loss/total"])


def test_it_is_chosen_on_the_command_line_and_documented(capsys):
    config = configuration(["chain", "--credit", "linear", "--credit.step-size", "0.1"])
    assert isinstance(config.credit, Linear)
    assert config.credit.step_size == 0.1
    assert Config.from_dict(config.to_dict()) == config
    main(["credit"])
    assert "a linear regression of the return" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["credit", "linear"])
    said = capsys.readouterr().out
    assert "needs:    actions" in said
    assert "--credit.step-size" in said


def test_it_is_viewed(tmp_path):
    run = train(config_with(FusedSettings(num_envs=4, unroll_length=5), steps=6 * UPDATE,
                            **{"reporting.traces": 1}), out=tmp_path / "run")  # fmt: skip
    recorded = record_run(run.path, 2)
    assert [*recorded.recordings[0].terms] == ["worth"]
    page = write_run_view(recorded, tmp_path / "view.html").read_text()
    assert "worth of a state" in page


def test_it_pays_in_a_wrapper():
    envs = gymnasium.make_vec("synthetic_returns/Chain-v0", num_envs=3, length=5, trigger=2,
                              free_moves=3)  # fmt: skip
    envs = SyntheticReturnsVectorWrapper(envs, method="linear", beta=0.0, learn_every=1)
    observation, _ = envs.reset(seed=0)
    paid = []
    for _ in range(60):
        before = np.array(envs.credit.driver.state)
        observation, reward, *ended, info = envs.step(np.ones(3, int))  # to the trigger
        learned = np.array(envs.credit.driver.state)
        over = ended[0] | ended[1]
        if np.array_equal(before, learned):
            arrived = info["_synthetic_return"] & ~over  # the others only started an episode
            want = np.where(arrived, observation @ learned, 0)
            np.testing.assert_allclose(reward, want, rtol=1e-4, atol=1e-6)
        assert not np.any(reward[over])
        paid.append(reward)
    assert np.any(paid)


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match="already is a credit method called 'episodic'"):
        register_method(type("Other", (Linear,), {"name": "episodic"}))
    assert find_method("linear") is Linear
