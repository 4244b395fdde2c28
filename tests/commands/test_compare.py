"""The command that compares methods, with training that only pretends."""

from pathlib import Path

import pytest

from synthetic_returns.cli import main
from synthetic_returns.commands.train import configuration
from synthetic_returns.utils.tables import read_csv
from tests.experiments.fake_runs import write_run

CHAIN = ("compare", "chain", "--credit", "none,oracle", "--steps", "1000")


@pytest.fixture
def trained(monkeypatch, tmp_path) -> list[str]:
    """The names of the jobs that were run; those called rudder fail."""
    names = []

    def pretend(jobs, *, workers, keep_going):
        assert keep_going
        failed = {}
        for job in jobs:
            if "rudder" in job.name:
                failed[job] = "ended with code 2: it exploded"
            elif not job.finished:
                names.append(job.name)
                write_run(job.out, configuration(job.arguments), climbs="none" not in job.name)
        return failed

    run = "synthetic_returns.experiments.comparison.run"
    monkeypatch.setattr(f"{run}.run_jobs", pretend)
    monkeypatch.setattr(f"{run}.draw_comparison", lambda *_: [])  # slow, and tested elsewhere
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    return names


def refused(capsys, *arguments: str) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_it_trains_what_is_missing_and_grows_and_overwrites_nothing(trained, capsys):
    main([*CHAIN, "--seeds", "1"])
    assert trained == ["chain none seed 0", "chain oracle seed 0"]
    folder = Path("comparisons", "chain")
    said = capsys.readouterr().out
    assert "oracle 1/1 1.0 (1.0-1.0) 1.00 (1.00-1.00) 1.00" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80
    assert "comparisons/chain/comparison.html" in said
    assert "<svg" in (folder / "comparison.html").read_text()

    trained.clear()
    main([*CHAIN, "--seeds", "1"])  # as it was
    assert trained == []
    main([*CHAIN, "--seeds", "2"])
    assert trained == ["chain none seed 1", "chain oracle seed 1"]
    assert [row["runs"] for row in read_csv(folder / "table.csv")] == [2, 2]
    page = (folder / "comparison.html").read_bytes()

    said = refused(capsys, *CHAIN, "--seeds", "2", "--agent.discount", "0.5")
    assert "comparisons/chain has the results of another comparison" in said
    assert "choose another --out" in said
    # The settings of a run can change without a flag: with another version, say.
    config = folder / "runs" / "chain" / "none-seed0" / "config.json"
    config.write_text(config.read_text().replace('"discount": 0.9', '"discount": 0.8'))
    said = refused(capsys, *CHAIN, "--seeds", "2")
    assert "agent.discount: 0.8 then, 0.9 now" in said
    assert (folder / "comparison.html").read_bytes() == page


def test_what_fails_is_listed_and_the_rest_compared(trained, capsys):
    more = ("--seeds", "1", "--out", "here", "--agent", "r2d2")
    main(["compare", "chain", "--credit", "none,rudder,hca", "--steps", "1000", *more])
    said = capsys.readouterr().out
    assert (
        "chain rudder: chain rudder seed 0 ended with code 2: it exploded; the same command" in said
    )
    assert "chain hca: the credit method 'hca' gives an advantage for each action" in said
    assert [row["method"] for row in read_csv(Path("here", "missing.csv"))] == ["hca", "rudder"]
    assert [row["method"] for row in read_csv(Path("here", "table.csv"))] == ["none"]


def test_the_arena_is_made_by_the_same_code(trained, capsys):
    main(["reproduce", "arena", "--quick", "--seeds", "1"])
    assert trained == [f"chain {name} seed 0" for name in ("none", "oracle", "advance")]
    assert Path("runs/reproduce-quick/arena/chain/none-seed0/summary.json").exists()
    names = {path.name for path in Path("results-quick/arena").iterdir()}
    assert {"comparison.html", "comparison.json", "table.csv", "which-method.md"} <= names


def test_the_arena_can_be_trained_in_pieces(trained, capsys):
    small = ("reproduce", "arena", "--quick", "--seeds", "1")
    main([*small, "--arms", "none", "oracle"])
    assert trained == ["chain none seed 0", "chain oracle seed 0"]
    trained.clear()
    main([*small, "--only", "chain", "--arms", "advance"])
    assert trained == ["chain advance seed 0"]
    table = read_csv(Path("results-quick/arena/table.csv"))
    assert [row["method"] for row in table] == ["none", "oracle", "advance"]  # of all pieces
    assert "there is no method 'rudder'" in refused(capsys, *small, "--arms", "rudder")


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["chian"], "did you mean 'chain'?"),
        (["chain", "--credit", "none,advnace"], "did you mean 'advance'?"),
        (["chain", "--seeds", "0"], "seeds is 0"),
        (["chain", "--seed", "3"], "--seed is no flag of a comparison: seeds are counted from 0"),
        (["--seeds", "3"], "begin with one or more: compare TASK..."),
        (["gym:CartPole-v1"], "does not define when an episode is a success"),
        (["chain", "--agent.discount", "2"], "discount is 2.0; it must lie in [0, 1]"),
        (
            ["chain", "--credit", "none", "--no-train"],
            "no run has finished in comparisons/chain/runs",
        ),
    ],
)
def test_mistakes_are_answered_with_what_to_do(trained, capsys, arguments, answer):
    assert answer in refused(capsys, "compare", *arguments)
    assert trained == []
