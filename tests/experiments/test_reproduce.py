"""The commands from end to end, with budgets of seconds."""

import dataclasses

import pytest

from synthetic_returns.commands import demo as demo_command
from synthetic_returns.commands import reproduce as reproduce_command
from synthetic_returns.experiments import catalog
from synthetic_returns.experiments.studies import demo
from synthetic_returns.experiments.studies.chain import CHAIN, STUDY
from synthetic_returns.training import traces
from synthetic_returns.utils.files import RunError
from synthetic_returns.utils.tables import read_csv
from tests.experiments.fake_runs import fake_experiment


@pytest.fixture
def tiny_chain(monkeypatch):
    """Chain with a budget of 10 updates."""
    tiny = dataclasses.replace(
        CHAIN, steps=6_400, seeds=1, flags=(*CHAIN.flags, "--reporting.eval-episodes", "20")
    )
    study = dataclasses.replace(STUDY, experiments=(tiny,))
    monkeypatch.setitem(catalog.STUDIES, "chain", study)
    return tiny


def test_reproduce_trains_records_and_reuses(tmp_path, tiny_chain, monkeypatch, capsys):
    arguments = ["chain", "--out", str(tmp_path / "out"), "--runs", str(tmp_path / "runs")]
    reproduce_command.main(arguments)
    assert (tmp_path / "out" / "chain.png").exists()
    rows = read_csv(tmp_path / "out" / "summary.csv")
    assert [(row["arm"], row["env_steps"]) for row in rows] == [
        ("episodic", 6_400),
        ("none", 6_400),
    ]
    assert len(read_csv(tmp_path / "out" / "chain" / "none-seed0.csv")) > 5
    printed = capsys.readouterr().out
    assert "episodic, 1 seed" in (tmp_path / "out" / "report.html").read_text()
    assert "out/report.html" in printed.replace("\n", "")
    assert "0 of 1" in printed
    assert "chain none: eval_success ≤ 0.05: 1 of 1" in printed
    recorded = traces.read_traces(tmp_path / "runs" / "chain" / "episodic-seed0", "scripted")
    assert len(recorded) == 20

    # Again: nothing is trained, everything is written anew.
    def refuse(*_):
        raise AssertionError("a finished run was started again")

    monkeypatch.setattr("synthetic_returns.training.jobs._start", refuse)
    (tmp_path / "out" / "chain.png").unlink()
    reproduce_command.main(arguments)
    assert (tmp_path / "out" / "chain.png").exists()

    # With other settings, the finished runs are not passed off as new ones.
    changed = dataclasses.replace(tiny_chain, flags=(*tiny_chain.flags, "--agent.discount", "0.5"))
    study = dataclasses.replace(STUDY, experiments=(changed,))
    monkeypatch.setitem(catalog.STUDIES, "chain", study)
    with pytest.raises(RunError, match=r"agent\.discount: 0\.9 then, 0\.5 now"):
        reproduce_command.main(arguments)


def test_a_study_without_a_quick_version_says_so():
    with pytest.raises(ValueError, match="'seeds' has no quick version"):
        reproduce_command.main(["seeds", "--quick"])


def test_the_number_of_seeds_must_be_positive():
    with pytest.raises(ValueError, match="seeds"):
        reproduce_command.main(["chain", "--seeds", "0"])


def test_the_demo_leaves_a_figure_and_says_where(tmp_path, monkeypatch, capsys):
    def pretend(jobs):
        assert [job.out.parents[2] for job in jobs] == [tmp_path / "demo-001"] * 2
        fake_experiment(demo.DEMO, tmp_path / "demo-001" / "runs")

    monkeypatch.setattr("synthetic_returns.experiments.run.run_jobs", pretend)
    demo_command.main(["--root", str(tmp_path)])
    assert (tmp_path / "demo-001" / "demo.png").exists()
    assert "demo-001/demo.png" in capsys.readouterr().out
