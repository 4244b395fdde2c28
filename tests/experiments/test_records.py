from synthetic_returns.experiments.experiment import EPISODIC
from synthetic_returns.experiments.outcome import Outcome
from synthetic_returns.experiments.records import update_summary, write_curve
from synthetic_returns.experiments.studies.chain import CHAIN
from synthetic_returns.utils.tables import read_csv
from tests.experiments.fake_runs import fake_run


def test_the_summary_renews_only_the_experiments_that_were_run(tmp_path):
    path = tmp_path / "summary.csv"
    update_summary(path, [{"experiment": "old", "seed": 0}, {"experiment": "new", "seed": 0}])
    rows = update_summary(
        path, [{"experiment": "new", "seed": 1}, {"experiment": "new", "seed": 2}]
    )
    assert [(row["experiment"], row["seed"]) for row in rows] == [
        ("old", 0),
        ("new", 1),
        ("new", 2),
    ]


def test_a_curve_keeps_its_last_row_when_thinned_out(tmp_path, monkeypatch):
    fake_run(CHAIN, EPISODIC, 0, tmp_path)
    outcome = Outcome.read(CHAIN, EPISODIC, 0, tmp_path)
    monkeypatch.setattr("synthetic_returns.experiments.records.MAX_ROWS", 20)
    write_curve(outcome, tmp_path)
    rows = read_csv(tmp_path / "episodic-seed0.csv")
    assert len(rows) == 17
    assert rows[-1]["env_steps"] == CHAIN.steps
    assert {"wall_s", "episode_return", "success", "trigger"} <= rows[0].keys()
