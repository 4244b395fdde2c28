"""What the commands list: within 80 columns on a terminal, plain fields when piped."""

import shutil
import subprocess

import pytest

from synthetic_returns.cli import main, usage
from synthetic_returns.commands.completion import completion_script
from synthetic_returns.credit.registry import method_names
from synthetic_returns.envs.registry import TASKS
from synthetic_returns.training.runs import Run

SUMMARY = {
    "env_steps": 1000,
    "wall_s": 2.0,
    "eval": {"return_mean": 1.5, "return_low": 1.0, "return_high": 2.0},
}


@pytest.fixture
def runs(tmp_path):
    """One run of each status, one of them deep in a folder that is no run; the newest is last."""
    folder = tmp_path / "runs"
    for number, name in enumerate(("finished", "interrupted", "demo/runs/seed-0", "broken")):
        with Run.create(folder / name, {"steps": 1000}, ["train"]) as run:
            with run.metrics(None) as metrics:
                metrics.write(500, {"episode_return": 0.5})
            if name == "finished":
                run.write_summary(SUMMARY)
        text = (run.path / "config.json").read_text()
        (run.path / "config.json").write_text(text.replace(run.created, f"2026-01-0{number + 1}"))
    (folder / "broken" / "config.json").write_text("{")
    (folder / "a-file").touch()
    (folder / "finished" / "checkpoints").mkdir(exist_ok=True)
    (folder / "nothing" / "in-it").mkdir(parents=True)
    (folder / "again").symlink_to(folder)
    return folder


def test_the_first_page_fits():
    assert max(map(len, usage().splitlines())) <= 80


@pytest.mark.parametrize(("command", "names"), [("tasks", TASKS), ("credit", method_names())])
def test_lists_fit_and_cut_no_name(command, names, terminal, capsys):
    main([command])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert {line.split()[0] for line in lines if line and line[0] != " "} >= set(names)


@pytest.mark.parametrize(("command", "names"), [("tasks", TASKS), ("credit", method_names())])
def test_lists_are_plain_when_piped(command, names, capsys):
    main([command])
    lines = capsys.readouterr().out.splitlines()
    assert len({line.count("\t") for line in lines}) == 1
    assert {line.split("\t")[0] for line in lines} >= set(names)
    assert "\x1b" not in "".join(lines)


def test_runs_are_listed_with_their_status(runs, capsys):
    with Run.create(runs / "running", {"steps": 10}, ["train"]):
        main(["runs", str(runs)])
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["run", "status", "score", "steps", "size", "note"]
    shown = {row[0]: row[1:4] for row in rows[1:]}
    assert shown == {
        "running": ["running", "-", "0"],
        "demo/runs/seed-0": ["interrupted", "0.50", "500"],
        "interrupted": ["interrupted", "0.50", "500"],
        "finished": ["finished", "1.50", "1,000"],
        "broken": ["broken", "-", "0"],
    }
    assert [row[0] for row in rows[1:5]] == [
        "running",
        "demo/runs/seed-0",
        "interrupted",
        "finished",
    ]
    assert "damaged or half-written" in rows[5][5]
    Run.open(runs / "interrupted", write=True).close()  # looking has taken nothing


def test_runs_fit_a_terminal(runs, terminal, capsys):
    (runs / "interrupted").rename(runs / ("key-to-door-" * 5 + "001"))
    main(["runs", str(runs)])
    lines = capsys.readouterr().out.splitlines()
    paths = [line for line in lines if str(runs) in line]  # a message with a path that has no space
    assert max(len(line) for line in lines if line not in paths) <= 80
    assert "key-to-door-" * 5 + "001" in lines


def test_a_run_and_a_folder_without_any(runs, capsys):
    main(["runs", str(runs / "finished")])
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == [".", "finished", "1.50"]
    main(["runs", str(runs / "nothing")])
    assert "train one: synthetic-returns train TASK" in capsys.readouterr().err


def test_a_folder_that_is_not_there(capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["runs", str(tmp_path / "nothing")])
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("synthetic-returns tr", "train"),
        ("synthetic-returns train key-to-door-ch", "key-to-door-chained"),
        ("synthetic-returns train chain --optimizer.learning", "--optimizer.learning-rate"),
        ("synthetic-returns view --gr", "--greedy"),
        ("synthetic-returns credit rud", "rudder"),
    ],
)
def test_bash_completes(line, expected):
    words = line.split()
    program = f"""{completion_script()}
COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}
_synthetic_returns; echo "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [expected]


def test_completion_is_printed_for_known_shells(capsys):
    main(["completion", "zsh"])
    assert "bashcompinit" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["completion", "tcsh"])
    assert ended.value.code == 2
    assert "bash or zsh, not 'tcsh'" in capsys.readouterr().err
