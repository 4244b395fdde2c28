"""Example episodes: what is in them, and that recording them changes nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.acting import actor
from synthetic_returns.config import Config
from synthetic_returns.credit.explainer import AuxiliaryExplainer, EpisodeExplainer
from synthetic_returns.credit.explanation import Explanation
from synthetic_returns.credit.none import NoCredit
from synthetic_returns.envs.base import VectorEnvironment
from synthetic_returns.presets import preset
from synthetic_returns.training.loading import load_run
from synthetic_returns.training.trace_recorder import TraceRecorder
from synthetic_returns.training.traces import Trace, read_traces, trace_points
from synthetic_returns.training.trainer import train
from synthetic_returns.viewer.playing import play, record
from synthetic_returns.viewer.shown_terms import line_charts, shown_terms
from synthetic_returns.viewer.state_bars import state_bars
from tests.small import small_config, untrained
from tests.viewer.made_up import one_of_each_kind


def tiny(task: str, name: str, changes: Mapping[str, Any] | None = None) -> Config:
    small = {
        "steps": 5120,
        "engine.num_envs": 8,
        "reporting.log_every": 1280,
        "reporting.eval_episodes": 4,
    }
    return preset(task, name).changed({**small, **(changes or {})})


def assert_close(a, b) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_points_are_evenly_spaced_and_end_with_training():
    assert trace_points(900, 3) == [300, 600, 900]
    assert trace_points(1000, 3) == [333, 666, 1000]
    assert trace_points(1000, 0) == []


def test_save_and_load_round_trip(tmp_path):
    x = np.arange(4.0)
    explanation = Explanation(one_of_each_kind(4), "choice")
    trace = Trace(12, np.ones((4, 2)), x, explanation, {"key": x > 2}, reference=x / 2)
    trace.save(tmp_path / "traces" / "12.npz")
    (loaded,) = read_traces(tmp_path)
    assert loaded.step == 12
    assert loaded.events.keys() == {"key"}
    for name in ("observation", "reward", "reference"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(trace, name))
    assert loaded.explanation.credit == "choice"
    assert list(loaded.explanation.terms) == list(explanation.terms)
    for name, term in explanation.terms.items():
        again = loaded.explanation.terms[name]
        np.testing.assert_array_equal(again.values, term.values)
        assert again.with_values(x) == term.with_values(x)  # all but the values
    assert read_traces(tmp_path, "scripted") == []


def test_files_of_the_first_version_are_still_read(tmp_path):
    """They have bare arrays, the credit first, and NaN where there was none."""
    x, unknown = np.arange(3.0), np.full(3, np.nan)
    known = {"step": 5, "observation": np.zeros((3, 2)), "reward": x, "events/key": x}
    (tmp_path / "traces").mkdir()
    at_the_end = np.array([1.0, 1.0, np.nan])
    np.savez(tmp_path / "traces" / "5.npz", **known, c=x, g=at_the_end, allow_pickle=False)
    np.savez(tmp_path / "traces" / "6.npz", **known, c=unknown, g=unknown, allow_pickle=False)
    credited, without = (trace.explanation for trace in read_traces(tmp_path))
    assert credited.credit == "c"
    assert [term.about for term in credited.terms.values()] == ["arriving", "leaving"]
    assert (without.credit, len(without.terms)) == (None, 0)


# The model is updated less often than by default: that takes most of the time.
LEARNED = tiny("chain", "episodic", {"credit.replay.updates_per_episode": 0.5})


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    """A run with the episodic learner and three traces."""
    return train(LEARNED, out=tmp_path_factory.mktemp("runs") / "run").path


def test_episodic_credit_of_every_state_as_the_learner_uses_it(recorded):
    traces = read_traces(recorded, "scripted")
    assert [trace.step for trace in traces] == [1760, 3440, 5120]
    newest = read_traces(recorded, "scripted", newest=2)
    assert [trace.step for trace in newest] == [3440, 5120]
    last = traces[-1]
    # The scripted policy walks right: start, eight states, the outcome and the end.
    np.testing.assert_array_equal(last.observation.argmax(axis=1), [*range(8, 17), 17, 17])
    assert last.events["trigger"].nonzero()[0].tolist() == [7]
    assert last.reward.tolist() == [0.0] * 10 + [1.0]
    # The final trace was made with the model that the checkpoint holds.
    step, _, credit = load_run(recorded, LEARNED)
    assert step == last.step
    assert isinstance(credit, EpisodeExplainer)
    state = credit.state
    c = state.contribution(jnp.asarray(last.observation))
    assert_close(credit.of_states(jnp.asarray(last.observation)), c)
    terms = {name: np.asarray(term.values) for name, term in last.explanation.terms.items()}
    assert list(terms) == ["c", "g", "b", "r_hat"]
    assert last.explanation.credit == "c"
    assert_close(terms["c"], np.append(c[:-1], 0))  # a terminal state earns nothing
    assert np.isnan([terms[name][-1] for name in ("g", "b", "r_hat")]).all()
    assert np.all((terms["g"][:-1] >= 0) & (terms["g"][:-1] <= 1))
    valid = jnp.ones((11, 1), bool)
    b = state.model.predict(jnp.asarray(last.observation)[:, None], valid, state.gate_scale).b
    # In units of reward: standardised, it is what the model says.
    assert_close(state.standardised(jnp.asarray(terms["b"])[:, None], valid)[:-1], b[:-1])


def test_an_episode_with_random_actions_and_what_random_play_earns_are_recorded(recorded):
    traces = [read_traces(recorded, player) for player in ("agent", "exploring", "scripted")]
    assert [[trace.step for trace in of_one] for of_one in traces] == [[1760, 3440, 5120]] * 3
    for agent, exploring, scripted in zip(*traces, strict=True):
        for trace in (agent, exploring, scripted):
            assert trace.reference is not None
            assert trace.reference.shape == trace.reward.shape
            assert trace.truth is not None
            assert np.isfinite(trace.reference).all()
        np.testing.assert_array_equal(np.asarray(agent.reference), np.asarray(scripted.reference))
    # The step onto the trigger contributes the reward of 1 that it will pay.
    assert np.asarray(traces[2][-1].truth)[7] == 1


def test_recording_changes_no_result(recorded, tmp_path):
    unrecorded = train(LEARNED.changed({"reporting.traces": 0}), out=tmp_path / "run").path
    agents = [load_run(run, LEARNED)[1:] for run in (recorded, unrecorded)]
    for a, b in zip(*(jax.tree.leaves(agent) for agent in agents), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not (unrecorded / "traces").exists()


@pytest.mark.parametrize("current", ["features", "core"])
def test_credit_of_the_agents_own_model(tmp_path, current):
    config = small_config("paper", {"credit.current": current, "reporting.traces": 1})
    run = train(config, out=tmp_path / "run")
    (trace,) = read_traces(run.path)
    _, agent, credit = load_run(run.path, config)
    assert isinstance(credit, AuxiliaryExplainer)
    model = agent.credit
    observation = jnp.asarray(trace.observation)[:, None]
    first = jnp.asarray(np.arange(len(trace.reward))[:, None] == 0)

    @eqx.filter_jit
    def says(network, model):
        features = network.torso(observation)
        hidden, _ = network.recur(features, first, network.initial_state(1))
        seen = hidden if current == "core" else features
        return model.contribution(features), model.gate(seen), model.baseline(seen)

    c, g, b = says(agent.network, model)
    terms = {name: np.asarray(term.values) for name, term in trace.explanation.terms.items()}
    assert_close(terms["c"][:-1], c[:-1, 0])
    assert terms["c"][-1] == 0  # a terminal state earns nothing
    assert_close(terms["g"][:-1], g[:-1, 0])
    assert_close(terms["b"][:-1], b[:-1, 0])


@pytest.mark.parametrize("name", ["paper", "fast"])
def test_the_unit_of_an_explanation_is_that_of_the_environments_rewards(name):
    """An agent that learns from scaled rewards has a model of scaled rewards."""
    config = tiny("chain", name)
    credits = [untrained(c)[1] for c in (config, config.changed({"reward.scale": 1 / 500}))]
    agent, task = untrained(config)[0], config.task
    here, there = (play(task, agent, credit, 2).explanation for credit in credits)
    assert here.terms
    unit = 500 if name == "paper" else 1  # the episodic method has units of its own
    for term, other in zip(here.terms.values(), there.terms.values(), strict=True):
        factor = 1 if term.kind == "gate" else unit
        np.testing.assert_allclose(other.values, factor * term.values, rtol=1e-4)
    bars, scaled_bars = (state_bars(task, credit) for credit in credits)
    assert bars is not None
    assert scaled_bars is not None
    np.testing.assert_allclose(scaled_bars.credit, unit * bars.credit, rtol=1e-4)


def test_a_prediction_of_several_rewards_says_so_and_is_shown_over_their_sum():
    config = tiny("chain", "episodic", {"credit.horizon": 3, "view.stride": 2})
    agent, credit = untrained(config)
    (recording,) = record(config.task, play(config.task, agent, credit, 1))
    one, six = line_charts(recording)
    assert one["lines"] == []
    assert (six["title"], six["lines"]) == ("reward of the next 6 steps", ["b", "r_hat"])
    reward = np.asarray(recording.reward)
    assert six["bars"][1] == pytest.approx(reward[1:7].sum())
    labels = {term["name"]: term["label"] for term in shown_terms(recording)}
    assert labels["r_hat"] == "predicted reward of the next 6 steps"
    assert labels["g"] == "gate g"


def test_the_agents_trace_is_its_best_episode_of_eight(tmp_path):
    """A fresh agent plays like a random one, which catches a ball in seven."""
    config = tiny("catch", "fast", {"credit": NoCredit()})
    agent, _ = untrained(config)
    TraceRecorder(config.task).record(tmp_path, 0, 3, agent, None)
    (trace,) = read_traces(tmp_path)
    vector = VectorEnvironment(config.task)
    state = actor.start(vector, agent.network, 8, jax.random.key(20_003))
    _, trajectory = actor.unroll(vector, agent.network, state, config.task.max_episode_steps)
    returns = trajectory.timestep.reward.sum(axis=0)
    assert len(set(returns.tolist())) > 2
    assert trace.reward.sum() == trace.events["catch"].sum() == returns.max()


def test_without_synthetic_returns_the_episode_is_still_there(tmp_path):
    config = tiny("key-to-door", "fast", {"credit": NoCredit()})
    agent, _ = untrained(config)
    TraceRecorder(config.task).record(tmp_path, 0, 0, agent, None)
    (trace,) = read_traces(tmp_path, "scripted")
    assert (trace.explanation.credit, len(trace.explanation.terms)) == (None, 0)
    # The scripted policy opens the door, and so ends the episode, after two steps in front of it.
    assert len(trace.reward) == 15 + 60 + 2 + 1
    assert trace.events["door"].nonzero()[0].tolist() == [77]


def test_a_negative_number_is_refused():
    with pytest.raises(ValueError, match="traces is -1; use 0"):
        tiny("chain", "fast", {"reporting.traces": -1})
