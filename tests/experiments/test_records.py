import math

import numpy as np
import pytest

from synthetic_returns.experiments.experiment import EPISODIC
from synthetic_returns.experiments.outcome import Outcome
from synthetic_returns.experiments.records import read_csv, update_summary, write_csv, write_curve
from synthetic_returns.experiments.studies.chain import CHAIN
from tests.experiments.fake_runs import fake_run


def test_rows_round_trip_with_missing_values_and_new_columns(tmp_path):
    path = tmp_path / "rows.csv"
    write_csv(
        path, [{"name": "a", "x": np.float64(0.123456)}, {"name": "b", "y": 800_000, "x": None}]
    )
    assert path.read_text() == "name,x,y\na,0.12346,\nb,,800000\n"
    first, second = read_csv(path)
    assert first["x"] == pytest.approx(0.12346)
    assert math.isnan(first["y"])
    assert second["name"] == "b"
    assert second["y"] == 800_000


def test_a_cell_that_would_break_the_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match="leave out commas"):
        write_csv(tmp_path / "rows.csv", [{"name": "a,b"}])


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
