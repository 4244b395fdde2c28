"""What people see: few lines where nobody watches, only numbers that exist."""

import io

from rich.console import Console

from synthetic_returns.training import jobs_progress
from synthetic_returns.training.job import Job
from synthetic_returns.training.jobs_progress import JobsProgress
from synthetic_returns.training.progress import QUIET_LINES, TrainingProgress, describe

ROW = {"steps_per_s": 12345.6, "episode_return": 1.5, "success": float("nan"), "loss": 3.0}


def test_a_row_is_described_by_what_is_known():
    assert describe(ROW) == "12,346 steps/s  return 1.50"
    assert "explained 0.25" in describe(ROW | {"credit/explained_variance": 0.25})


def test_in_brief_it_is_what_matters_most():
    assert describe(ROW, brief=True) == "return 1.50"
    assert describe(ROW | {"success": 0.5, "credit/x": 1.0}, brief=True) == "success 0.50"
    assert describe({"steps_per_s": 1.0}, brief=True) == ""


def test_many_jobs_fit_a_narrow_terminal(monkeypatch, tmp_path):
    """The long name, the bar, the share, the time and a number; wider ones have room for all."""
    job = Job("key-to-door-250 decomposition seed 4", (), tmp_path / "run", 1000)
    monkeypatch.setattr(Job, "newest_row", lambda _: ROW | {"env_steps": 500, "success": 0.25})
    shown = {}
    for width in (80, 130):
        console = Console(file=io.StringIO(), force_terminal=True, width=width)
        monkeypatch.setattr(jobs_progress, "Console", lambda stderr, c=console: c)
        with JobsProgress(2) as progress:
            progress.refresh([job])
        assert isinstance(console.file, io.StringIO)
        shown[width] = console.file.getvalue()
        for words in (job.name, "50%", "0:00:00", "success 0.25"):
            assert words in shown[width], words
    assert "steps/s" not in shown[80]
    assert "12,346 steps/s" in shown[130]


def test_few_lines_without_a_terminal(capsys):
    with TrainingProgress("chain", 1000, Console(file=io.StringIO())) as progress:
        for step in range(1, 1001):
            progress(step, ROW)
    lines = capsys.readouterr().err.splitlines()
    assert 5 <= len(lines) <= QUIET_LINES + 1
    assert lines[-1] == "chain  step 1,000 of 1,000  12,346 steps/s  return 1.50"


def test_a_bar_on_a_terminal(capsys):
    console = Console(file=io.StringIO(), force_terminal=True, width=150)
    with TrainingProgress("chain", 1000, console) as progress:
        progress(500, ROW)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "50%" in shown
    assert "12,346 steps/s" in shown
    assert not capsys.readouterr().err
