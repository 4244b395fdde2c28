import dataclasses

import numpy as np
import pytest

from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.experiments.experiment import EPISODIC, NONE, Experiment
from synthetic_returns.experiments.outcome import Outcome, read_outcomes, read_recorded, spike_ratio
from synthetic_returns.experiments.records import write_curve
from synthetic_returns.experiments.studies.catch import CATCH_DELAYED_20
from synthetic_returns.experiments.studies.chain import CHAIN
from synthetic_returns.training.traces import Trace
from tests.experiments.fake_runs import fake_run, fake_trace


def trace_of(c: list[float], happened: list[int]) -> Trace:
    zeros = np.zeros(len(c))
    explanation = Explanation({"c": Term(np.array(c), "c")}, "c")
    return Trace(0, zeros, zeros, explanation, {"key": np.array(happened)})


def test_the_spike_ratio_compares_the_event_with_the_largest_other_state():
    # The first and the last two states do not count, however large their c is.
    trace = trace_of([9, 0.2, 2, -0.5, 0.1, 9, 9], [0, 0, 1, 0, 0, 0, 0])
    assert spike_ratio(trace, "key") == pytest.approx(2 / 0.5)


def test_the_spike_ratio_takes_the_mean_over_several_events():
    trace = trace_of([0, 1, 0.5, 3, 0, 0], [0, 1, 0, 1, 0, 0])
    assert spike_ratio(trace, "key") == pytest.approx(2 / 0.5)


def test_no_event_no_ratio():
    assert np.isnan(spike_ratio(trace_of([0, 1, 2, 3, 4], [0, 0, 0, 0, 0]), "key"))


def test_no_credit_no_ratio():
    trace = dataclasses.replace(
        trace_of([0, 1, 2, 3, 4], [0, 1, 0, 0, 0]), explanation=Explanation()
    )
    assert np.isnan(spike_ratio(trace, "key"))


def test_the_row_of_a_solved_run(tmp_path):
    fake_run(CHAIN, EPISODIC, 0, tmp_path)
    outcome = Outcome.read(CHAIN, EPISODIC, 0, tmp_path)
    row = outcome.row()
    assert outcome.solving is not None
    assert row["steps_to_solve"] == outcome.steps[outcome.solving.row]
    assert row["wall_s_to_solve"] == outcome.metrics["wall_s"][outcome.solving.row]
    assert 0.98 <= row["lowest_after_solving"] <= 1
    assert row["eval_success"] == 1
    assert row["credit_ratio_end"] == pytest.approx(10)
    # While learning: the last trace from before the task was solved.
    traces = outcome.scripted_traces()
    assert traces["learning"].step < row["steps_to_solve"] < traces["end"].step == CHAIN.steps
    assert traces["learning"].step + CHAIN.steps // 20 >= row["steps_to_solve"]


def test_the_row_of_an_unsolved_run(tmp_path):
    fake_run(CHAIN, NONE, 0, tmp_path)
    row = Outcome.read(CHAIN, NONE, 0, tmp_path).row()
    assert row["steps_to_solve"] is row["wall_s_to_solve"] is row["lowest_after_solving"] is None
    assert row["eval_success"] == pytest.approx(0.1)


@pytest.mark.parametrize("arm", [EPISODIC, NONE])
def test_example_episodes_are_early_middle_and_late(tmp_path, arm):
    fake_run(CATCH_DELAYED_20, arm, 0, tmp_path)
    outcome = Outcome.read(CATCH_DELAYED_20, arm, 0, tmp_path)
    early, middle, late = (trace.step for trace in outcome.example_traces())
    assert early < middle < late == CATCH_DELAYED_20.steps
    assert early == CATCH_DELAYED_20.steps // 20  # the first one
    success = outcome.curve("success")
    half = outcome.steps[np.flatnonzero(success >= success.max() / 2)][0]
    if arm is EPISODIC:
        assert abs(middle - half) <= CATCH_DELAYED_20.steps / 40
    exploring = [trace.step for trace in outcome.example_traces("exploring")]
    assert exploring == [early, middle, late]


@pytest.mark.parametrize("recorded", [1, 2, 3])
def test_few_example_episodes_are_all_shown(tmp_path, recorded):
    experiment = dataclasses.replace(CATCH_DELAYED_20, traces=recorded)
    fake_run(experiment, EPISODIC, 0, tmp_path)
    outcome = Outcome.read(experiment, EPISODIC, 0, tmp_path)
    assert len(outcome.example_traces()) == recorded


def test_what_was_recorded_of_a_run_has_its_curves(tmp_path):
    fake_run(CHAIN, EPISODIC, 0, tmp_path)
    outcome = Outcome.read(CHAIN, EPISODIC, 0, tmp_path)
    write_curve(outcome, tmp_path / "record")
    recorded = read_recorded(CHAIN, tmp_path / "record")
    assert [*recorded] == ["episodic"]
    (again,) = recorded["episodic"]
    np.testing.assert_allclose(again.curve("success"), outcome.curve("success"), rtol=1e-4)
    np.testing.assert_allclose(again.steps, outcome.steps, rtol=1e-4)
    assert again.solving is not None
    assert outcome.solving is not None
    assert again.solving.row == outcome.solving.row


def test_only_finished_runs_are_read(tmp_path):
    experiment = Experiment("tiny", "Tiny", "chain", 1000, 0.98, "trigger", seeds=2)
    fake_run(experiment, EPISODIC, 1, tmp_path)
    unfinished = fake_run(experiment, EPISODIC, 0, tmp_path)
    (unfinished / "summary.json").unlink()
    outcomes = read_outcomes(experiment, tmp_path)
    assert {arm: [run.seed for run in runs] for arm, runs in outcomes.items()} == {"episodic": [1]}


def test_the_fake_trace_spikes_at_the_trigger():
    assert spike_ratio(fake_trace(0, ["success", "trigger"], 10, "trigger"), "trigger") == 10
