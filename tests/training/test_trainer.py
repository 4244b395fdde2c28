"""Training runs: resumed exactly, stopped cleanly, never overwritten, refused when they diverge."""

import dataclasses
import json
import math
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.agents.impala.learner import Learner
from synthetic_returns.config import Config
from synthetic_returns.credit.rudder.method import Rudder
from synthetic_returns.engines.fused import FusedEngine
from synthetic_returns.training import trainer
from synthetic_returns.training.checkpoints import Checkpoints
from synthetic_returns.training.loading import load_agent
from synthetic_returns.training.runs import Run, RunError
from synthetic_returns.training.trainer import TrainingStopped, train, train_seeds
from tests.small import UPDATE, small_config
from tests.trees import arrays

CLOCKS = ("wall_s", "steps_per_s")


def final_state(run):
    """Everything in the newest checkpoint but the time it took."""
    store = Checkpoints(run.path / "checkpoints")
    config = small_config(run.config["credit"]["name"])
    template = {"engine": FusedEngine(config, [0]).snapshot(0), "wall_s": 0.0}
    step, tree = store.restore(template)
    return step, arrays(tree["engine"])


@pytest.fixture
def stop_in_update(monkeypatch):
    """Sends this process a signal in the n-th update, as Ctrl-C or a cluster would."""

    def arrange(number, update):
        step, done = FusedEngine.step, []

        def step_and_signal(self, at_most):
            del at_most
            updates = step(self)
            done.append(1)
            if len(done) == update:
                signal.raise_signal(number)
            return updates

        monkeypatch.setattr(FusedEngine, "step", step_and_signal)

    return arrange


def test_settings_that_cannot_be_trained_with_leave_no_directory(tmp_path):
    config = small_config("none").changed(credit=Rudder(max_episode_steps=1))
    with pytest.raises(ValueError, match="raise its setting max_episode_steps"):
        train(config, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("credit", "number"), [("paper", signal.SIGINT), ("episodic", signal.SIGTERM)]
)
def test_stopped_and_resumed_equals_never_stopped(tmp_path, stop_in_update, credit, number):
    config = small_config(credit, steps=8 * UPDATE)
    whole = train(config, out=tmp_path / "whole")

    stop_in_update(number, 3)  # between two rows of metrics
    handler = signal.getsignal(number)
    with pytest.raises(TrainingStopped, match=r"step 60 of 160; continue with --resume .*parts"):
        train(config, out=tmp_path / "parts")
    assert signal.getsignal(number) is handler
    assert not (tmp_path / "parts" / "summary.json").exists()
    assert Checkpoints(tmp_path / "parts" / "checkpoints").latest_step() == 60

    parts = train(config, out=tmp_path / "parts", resume=True)
    (step, want), (same_step, got) = final_state(whole), final_state(parts)
    assert step == same_step == 160
    assert want.keys() == got.keys()
    for path, array in want.items():
        np.testing.assert_array_equal(got[path], array, err_msg=path)
    whole_rows, rows = whole.read_metrics(), parts.read_metrics()
    assert whole_rows.keys() == rows.keys()
    np.testing.assert_array_equal(rows["env_steps"], [40, 80, 120, 160])
    for name in rows.keys() - {*CLOCKS}:
        np.testing.assert_array_equal(rows[name], whole_rows[name], err_msg=name)
    assert parts.summary()["eval"] == whole.summary()["eval"]


def test_a_run_reports_at_the_same_steps_however_many_updates_a_call_makes(tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "PATIENCE", 1e9)
    config = small_config("paper", {"reporting.log_every": 50, "reporting.traces": 1}, steps=205)
    step, made, rows = FusedEngine.step, {}, {}
    for most in (0, 1):

        def counted(self, at_most, most=most):
            updates = step(self, at_most)
            made.setdefault(most, []).append(updates)
            return updates

        monkeypatch.setattr(FusedEngine, "step", counted)
        run = train(config.changed({"engine.updates_per_call": most}), out=tmp_path / str(most))
        rows[most] = run.read_metrics()
    # The first call comes before anybody knows how fast it is.
    assert made == {0: [1, 1, 1, 2, 3, 2, 1], 1: [1] * 11}
    np.testing.assert_array_equal(rows[0]["env_steps"], [60, 100, 160, 200, 220])
    for name in rows[0].keys() - {*CLOCKS}:
        np.testing.assert_allclose(rows[0][name], rows[1][name], rtol=1e-3, atol=1e-5, err_msg=name)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One run, trained for two rows and then for two more."""
    path = tmp_path_factory.mktemp("runs") / "finished"
    train(small_config(), out=path)
    return train(small_config(steps=8 * UPDATE), out=path, resume=True)


def test_training_for_longer_is_no_other_experiment(finished):
    np.testing.assert_array_equal(finished.read_metrics()["env_steps"], [40, 80, 120, 160])
    assert np.all(np.diff(finished.read_metrics()["wall_s"]) > 0)


def annealed(**settings):
    return small_config(
        "episodic", {"agent.entropy_decay": 1.0, "agent.entropy_cost": 0.1} | settings
    )


def test_a_run_that_goes_on_for_longer_keeps_its_schedules(tmp_path):
    """Stretched to the new number of steps, they would go back up."""
    config = annealed(**{"optimizer.anneal": False})
    train(config, out=tmp_path / "run")
    longer = train(config.changed(steps=8 * UPDATE), out=tmp_path / "run", resume=True)
    assert longer.config["schedule_steps"] == config.steps
    cost = Learner(Config.from_dict(longer.config)).entropy_cost
    assert [float(cost(jnp.int32(n))) for n in (0, 2, 4, 6)] == pytest.approx([0.1, 0.05, 0, 0])
    again = train(config.changed(steps=10 * UPDATE), out=tmp_path / "run", resume=True)
    assert again.config["schedule_steps"] == config.steps


def test_a_step_size_of_zero_is_not_trained_with(tmp_path):
    config = annealed()
    assert config.optimizer.anneal
    train(config, out=tmp_path / "run")
    longer = config.changed(steps=8 * UPDATE)
    with pytest.raises(RunError, match=r"planned for 80 steps.*--schedule-steps 160"):
        train(longer, out=tmp_path / "run", resume=True)
    stretched = longer.changed(schedule_steps=8 * UPDATE)
    run = train(stretched, out=tmp_path / "run", resume=True)
    assert run.read_metrics()["env_steps"][-1] == 8 * UPDATE


def test_the_summary_is_an_interface(finished):
    summary = json.loads((finished.path / "summary.json").read_text())
    measured = {name: summary.pop(name) for name in (*CLOCKS, "peak_memory_mb", "eval")}
    assert summary == {
        "task": "chain",
        "preset": "paper",
        "agent": "impala",
        "credit": "paper",
        "seed": 0,
        "env_steps": 160,
    }
    assert measured["steps_per_s"] == pytest.approx(160 / measured["wall_s"])
    assert not measured["peak_memory_mb"] <= 0  # not a number where the system does not say
    evaluation = measured["eval"]
    assert evaluation["episodes"] == 6
    assert evaluation["return_low"] <= evaluation["return_mean"] <= evaluation["return_high"]
    assert 0 <= evaluation["success"] == evaluation["return_mean"] <= evaluation["trigger"] <= 1


def test_the_metrics_are_an_interface(finished):
    columns = finished.read_metrics()
    assert {"env_steps", "wall_s", "episode_return", "steps_per_s", "success"} <= columns.keys()
    assert all(np.all(np.isfinite(column)) for column in columns.values())
    assert list((finished.path / "tensorboard").glob("events.*"))


def test_a_second_run_never_overwrites(finished):
    before = (finished.path / "summary.json").read_bytes()
    with pytest.raises(FileExistsError, match=r"never overwrites.*--out.*--resume"):
        train(small_config(), out=finished.path)
    assert (finished.path / "summary.json").read_bytes() == before


def test_other_settings_are_refused_and_named(finished):
    other = small_config("paper", {"reward.alpha": 0.3, "engine.unroll_length": 10})
    with pytest.raises(
        RunError, match=r"engine.unroll_length: 5 then, 10 now, reward.alpha: 0.5 then, 0.3 now"
    ):
        train(other, out=finished.path, resume=True)
    Run.open(finished.path, write=True).close()  # and the run is free again


def test_the_agent_of_a_run_can_be_loaded(finished):
    config, step, agent = load_agent(finished.path)
    assert config == small_config(steps=8 * UPDATE, schedule_steps=4 * UPDATE)
    assert step == 160
    _, want = final_state(finished)
    weights = {path: leaf for path, leaf in want.items() if "agent" in path and "learner" in path}
    got = jax.tree.leaves(agent)
    assert len(got) == len(weights)
    for mine, true in zip(got, weights.values(), strict=True):
        np.testing.assert_array_equal(mine, true)


def test_a_diverging_run_stops_and_keeps_the_checkpoint_before(tmp_path):
    settings = {
        "optimizer.learning_rate": 1e30,
        "reporting.log_every": UPDATE,
        "reporting.checkpoint_every": 0.0,
    }
    config = small_config("none", settings, steps=10 * UPDATE)
    with pytest.raises(
        TrainingStopped, match=r"is (nan|inf|\d).* at step \d+ .*smaller --optimizer.learning-rate"
    ) as stopped:
        train(config, out=tmp_path / "run")
    rows = Run.open(tmp_path / "run").read_metrics()
    last_good = int(rows["env_steps"][-2])
    assert f"checkpoint of step {last_good} is kept" in str(stopped.value)
    assert Checkpoints(tmp_path / "run" / "checkpoints").latest_step() == last_good
    assert math.isfinite(rows["loss/total"][-2])
    assert not (tmp_path / "run" / "summary.json").exists()


def test_divergence_before_anything_was_saved_says_so(tmp_path, monkeypatch):
    report = FusedEngine.report
    monkeypatch.setattr(
        FusedEngine, "report", lambda self: [report(self)[0] | {"loss/total": math.nan}]
    )
    with pytest.raises(TrainingStopped, match=r"loss/total is nan at step 40.*nothing was saved"):
        train(small_config("none"), out=tmp_path / "run")


def test_progress_is_told_every_row_and_signals_are_left_alone(tmp_path):
    seen = []
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    train(
        small_config("none"),
        out=tmp_path / "run",
        progress=lambda step, row: seen.append((step, row["episode_return"])),
    )
    rows = Run.open(tmp_path / "run").read_metrics()
    assert seen == list(zip(rows["env_steps"], rows["episode_return"], strict=True))
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_seeds_are_trained_as_one_into_a_run_each(tmp_path):
    configs = [small_config("none", seed=seed) for seed in (0, 1)]
    outs = [tmp_path / "a", tmp_path / "b"]
    runs = train_seeds(configs, outs)
    assert [run.summary()["seed"] for run in runs] == [0, 1]
    losses = [run.read_metrics()["loss/total"] for run in runs]
    assert np.any(losses[0] != losses[1])
    longer = [dataclasses.replace(config, steps=6 * UPDATE) for config in configs]
    for run in train_seeds(longer, outs, resume=True):
        np.testing.assert_array_equal(run.read_metrics()["env_steps"], [40, 80, 120])


def test_different_experiments_are_not_trained_as_one():
    configs = [small_config(), small_config("paper", {"reward.alpha": 0.1})]
    with pytest.raises(ValueError, match="differ in more than their seed"):
        train_seeds(configs, [None, None])
