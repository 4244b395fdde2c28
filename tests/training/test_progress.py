"""What people see: few lines where nobody watches, only numbers that exist."""

import io

from rich.console import Console

from synthetic_returns.training.progress import QUIET_LINES, TrainingProgress, describe

ROW = {"steps_per_s": 12345.6, "episode_return": 1.5, "success": float("nan"), "loss": 3.0}


def test_a_row_is_described_by_what_is_known():
    assert describe(ROW) == "12,346 steps/s  return 1.50"
    assert "explained 0.25" in describe(ROW | {"credit/explained_variance": 0.25})


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
