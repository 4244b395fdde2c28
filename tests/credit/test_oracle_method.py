"""The oracle pays what the task says, learns nothing, and is refused where nobody says it."""

import dataclasses
import itertools
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

import synthetic_returns as sr
from synthetic_returns.cli import main
from synthetic_returns.commands.train import configuration
from synthetic_returns.config import Config
from synthetic_returns.credit.data.segments import segment_of
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.oracle import Oracle
from synthetic_returns.credit.registry import method_names
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.engines.engine import make_engine
from synthetic_returns.engines.settings import ClusterSettings, FusedSettings
from synthetic_returns.training.traces import read_traces
from synthetic_returns.training.trainer import train
from synthetic_returns.viewer.playing import play
from synthetic_returns.viewer.view_run import record_run, write_run_view
from tests.engines.fake_ray import FakeRay
from tests.small import UPDATE, small_config
from tests.trees import arrays


def oracle_config(**settings: Any) -> Config:
    return small_config("none", {"credit": Oracle(), **settings})


def follow(engine: Any, steps: int, monkeypatch: Any) -> tuple[Any, np.ndarray]:
    """Trains; the segments that the driver saw, one after another, and its credit."""
    seen, given = [], []
    original = CreditDriver.follow

    def spy(driver, segment, item, stream=0):
        found = original(driver, segment, item, stream)
        if stream == 0:
            seen.append(jax.tree.map(np.array, segment))
            given.append(np.array(found[0][1].reward))
        return found

    monkeypatch.setattr(CreditDriver, "follow", spy)
    for _ in range(steps):
        engine.step()
    return jax.tree.map(lambda *x: np.concatenate(x), *seen), np.concatenate(given)


@pytest.mark.parametrize("engine", [FusedSettings(), ClusterSettings()], ids=lambda e: e.name)
def test_it_pays_what_the_task_says_and_every_episode_its_return(engine, monkeypatch):
    FakeRay().install(monkeypatch)
    settings = dataclasses.replace(engine, num_envs=4, unroll_length=5)
    engine = make_engine(oracle_config(engine=settings), [0])
    seen, paid = follow(engine, 14, monkeypatch)
    report = engine.report()[0]
    engine.close()
    last = seen.last.reshape(14, 6, -1)[:, 1:].reshape(paid.shape)
    assert np.any(paid > 0)
    assert np.any(paid < 0)
    for row in range(paid.shape[1]):
        ends = np.flatnonzero(last[:, row])
        assert len(ends) > 5
        # The first episode may have begun before the first unroll.
        whole = slice(ends[0] + 1, ends[-1] + 1)
        np.testing.assert_array_equal(paid[whole, row], seen.contribution[whole, row])
        for start, end in itertools.pairwise(ends):
            assert paid[start + 1 : end + 1, row].sum() == 0
    assert np.isfinite(report["loss/total"])
    assert not any(name.startswith("credit/") for name in report)


def test_it_keeps_no_episodes_and_waits_for_nothing(monkeypatch):
    engine: Any = make_engine(oracle_config(), [0])
    (driver,) = engine._drivers

    def refuse(*_):
        raise AssertionError("nothing should be recorded")

    monkeypatch.setattr(driver.recorders[0], "record", refuse)
    monkeypatch.setattr(driver, "learn", refuse)
    for _ in range(8):
        engine.step()
    assert driver.frozen
    driver.unfreeze()
    assert driver.frozen
    assert len(driver.buffer) == 0
    assert driver.snapshot().keys() == {"state", "updates", "updates_owed", "carry"}
    assert driver.report() == {}


def test_a_snapshot_goes_on_like_the_original():
    engines = [make_engine(oracle_config(), [0]) for _ in range(2)]
    for _ in range(4):
        engines[0].step()
    snapshot = jax.tree.map(lambda x: x.copy() if hasattr(x, "copy") else x, engines[0].snapshot(0))
    engines[1].restore([snapshot])
    for engine in engines:
        for _ in range(4):
            engine.step()
    want, got = (arrays(engine.snapshot(0)) for engine in engines)
    assert want.keys() == got.keys()
    for name, array in want.items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)


def test_several_seeds_are_one_computation():
    engine = make_engine(oracle_config(), [0, 1])
    for _ in range(4):
        engine.step()
    assert all(np.isfinite(report["loss/total"]) for report in engine.report())


def test_it_is_viewed_and_explained(tmp_path):
    config = oracle_config(steps=6 * UPDATE, **{"reporting.traces": 1})
    run = train(config, out=tmp_path / "run")
    (trace,) = read_traces(run.path, "scripted")
    assert [*trace.explanation.terms] == ["contribution"]
    # The script goes straight to the trigger, two cells away; the terminal state earns nothing.
    np.testing.assert_array_equal(trace.explanation.paid, [0, 0, 1, 0, 0, 0])
    assert [*trace.events] == ["success", "trigger"]
    recorded = record_run(run.path, 2)
    assert [*recorded.recordings[0].terms] == ["contribution"]
    assert [*recorded.recordings[0].events] == ["success", "trigger"]
    assert "contribution" in write_run_view(recorded, tmp_path / "view.html").read_text()


def test_thinned_episodes_are_explained_by_what_is_paid():
    config = sr.preset("catch-delayed", runs=3).changed({"credit": Oracle(), "reward.beta": 1.0})
    engine: Any = make_engine(config.changed({"engine.num_envs": 4}), [0])
    found = []
    for stride in (1, 3):
        credit = dataclasses.replace(engine.explainer(0), view=View(stride=stride))
        found.append(play(config.task, engine.agent(0), credit, 20).explanation.paid)
    assert np.any(found[0])
    np.testing.assert_array_equal(*found)


def test_it_is_chosen_and_listed_on_the_command_line(capsys):
    assert method_names()[:2] == ["none", "oracle"]
    config = configuration(["catch-delayed", "--credit", "oracle"])
    assert isinstance(config.credit, Oracle)
    assert (config.reward.beta, config.reward.last_reward) == (1, 1)  # the preset's beta is 0
    assert Config.from_dict(config.to_dict()) == config
    main(["credit"])
    assert "true contributions, told by the task" in capsys.readouterr().out
    main(["credit", "oracle"])
    said = capsys.readouterr().out
    assert "needs:    true contributions" in said
    assert "used in:  train" in said
    assert "It has no settings." in said


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--credit.replay.slots", "9"], "has no meaning with the credit method 'oracle'"),
        (["--view.stride", "2"], "has no meaning with the credit method 'oracle'"),
        (["--engine", "local"], "environments on the host do not tell: use the engine 'fused'"),
    ],
)
def test_flags_that_do_not_fit_are_refused(flags, message):
    with pytest.raises(ValueError, match=message):
        configuration(["chain", "--credit", "oracle", *flags])


def test_where_contributions_are_not_known_it_is_refused():
    with pytest.raises(ValueError, match=r"gym:CartPole-v1 does not know them: choose another"):
        configuration(["gym:CartPole-v1", "--credit", "oracle"])
    envs = gymnasium.make_vec("synthetic_returns/Chain-v0", num_envs=2)
    with pytest.raises(ValueError, match=r"no Gymnasium environment tells: train with `synthetic"):
        sr.SyntheticReturnsVectorWrapper(envs, method="oracle")
    spec = EpisodeSpec((2,), np.dtype(np.float32), 5)
    with pytest.raises(ValueError, match="'oracle' needs the true contributions of steps, which"):
        CreditDriver(Oracle(), spec, View(), max_episode_steps=5, num_envs=1,
                     key=jax.random.key(0))  # fmt: skip


@pytest.mark.parametrize("setting", ["reward.beta", "reward.last_reward"])
def test_rewards_that_are_left_out_are_refused(setting):
    with pytest.raises(ValueError, match="subtracts its credit at the end of an episode"):
        sr.preset("chain").changed({"credit": Oracle(), setting: 0.0})


def test_steps_that_tell_nothing_are_refused():
    config = small_config("none")
    engine: Any = make_engine(config, [0])
    _, trajectory = engine._unroll(engine.agent(0).network, engine._actor_state)
    with pytest.raises(ValueError, match=r"VectorEnvironment\(env, contributions=True\)"):
        Oracle().assign(None, None, segment_of(trajectory, View()))
