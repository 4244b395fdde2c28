import numpy as np

from synthetic_returns.credit.explanation import Explanation
from synthetic_returns.experiments.experiment import EPISODIC
from synthetic_returns.experiments.outcome import Outcome
from synthetic_returns.experiments.records import update_summary, write_curve, write_traces
from synthetic_returns.experiments.studies.chain import CHAIN
from synthetic_returns.training.traces import Trace
from synthetic_returns.utils.tables import Row, read_csv
from tests.experiments.fake_runs import fake_run
from tests.viewer.made_up import one_of_each_kind


def test_the_summary_renews_only_the_arms_that_were_run(tmp_path):
    path = tmp_path / "summary.csv"

    def rows_of(*arms: tuple[str, str, int]) -> list[Row]:
        return [dict(zip(("experiment", "arm", "seed"), arm, strict=True)) for arm in arms]

    update_summary(path, rows_of(("a", "with", 0), ("a", "with", 1), ("a", "none", 0)))
    update_summary(path, rows_of(("b", "with", 0)))
    rows = update_summary(path, rows_of(("a", "with", 2), ("a", "with", 3), ("c", "with", 0)))
    assert [(row["experiment"], row["arm"], row["seed"]) for row in rows] == [
        ("a", "with", 2),
        ("a", "with", 3),
        ("a", "none", 0),
        ("b", "with", 0),
        ("c", "with", 0),
    ]


def test_traces_have_a_column_for_every_term_in_order(tmp_path):
    x = np.arange(3.0)
    explanation = Explanation(one_of_each_kind(3), "worth")
    trace = Trace(7, np.zeros((3, 2)), x, explanation, {"key": x > 1})
    write_traces(tmp_path / "traces.csv", [trace])
    header, first, *_, last = (tmp_path / "traces.csv").read_text().splitlines()
    assert header == (
        "training_steps,t,reward,worth,doubt,guess,level,choice_0,choice_1,choice_2,key"
    )
    assert first.startswith("7,0,0,1,0.5,0,0,")
    assert last.split(",")[4:6] == ["", ""]  # what is about leaving the terminal state


def test_a_curve_keeps_its_last_row_when_thinned_out(tmp_path, monkeypatch):
    fake_run(CHAIN, EPISODIC, 0, tmp_path)
    outcome = Outcome.read(CHAIN, EPISODIC, 0, tmp_path)
    monkeypatch.setattr("synthetic_returns.experiments.records.MAX_ROWS", 20)
    write_curve(outcome, tmp_path)
    rows = read_csv(tmp_path / "episodic-seed0.csv")
    assert len(rows) <= 20 < len(outcome.steps)
    assert rows[-1]["env_steps"] == CHAIN.steps
    assert {"wall_s", "episode_return", "success", "trigger"} <= rows[0].keys()
