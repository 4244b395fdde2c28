"""Sweeps: the trials of one that was interrupted are those of one that was not; none is lost."""

import json
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import optuna
import pytest

from synthetic_returns.cli import main
from synthetic_returns.experiments.sweeps.outcome import (
    read_outcomes,
    setting_importance,
    write_sweep,
)
from synthetic_returns.experiments.sweeps.run import progress_values, run_sweep
from synthetic_returns.experiments.sweeps.study import TrialState, open_study, read_settings
from synthetic_returns.training.job import JobFailed
from synthetic_returns.training.metrics import read_metrics
from synthetic_returns.training.runs import Run
from synthetic_returns.utils.files import RunError, acquire_lock
from synthetic_returns.utils.tables import read_csv
from tests.experiments.fake_training import STEPS, Fake, small_sweep
from tests.small import SMALL_FLAGS


@pytest.fixture
def fake(monkeypatch):
    fake = Fake()
    fake.install(monkeypatch)
    return fake


def states(study):
    return [trial.state for trial in study.get_trials()]


def drawn(study):
    return [trial.params for trial in study.get_trials()]


def test_every_trial_is_trained_with_what_was_drawn_for_it(fake, tmp_path):
    study = run_sweep(small_sweep(tmp_path / "s"), 3, workers=1)
    assert states(study) == [TrialState.COMPLETE] * 3
    rates = [trial.params["optimizer.learning_rate"] for trial in study.get_trials()]
    assert len(set(rates)) == 3
    assert all(1e-4 <= rate <= 1 for rate in rates)
    for number, (trial, rate) in enumerate(zip(study.get_trials(), rates, strict=True)):
        run = Run.open(tmp_path / "s" / f"trial-{number:03d}")
        assert run.config["optimizer"]["learning_rate"] == rate
        assert run.config["seed"] == number
        assert trial.value == fake.value(rate, 1.0)
        assert trial.intermediate_values[10] == fake.value(rate, 0.25)


def test_interrupted_twice_and_finished_equals_never_interrupted(fake, tmp_path):
    whole = run_sweep(small_sweep(tmp_path / "a" / "s"), 4, workers=1)
    sweep, cut = small_sweep(tmp_path / "b" / "s"), {6, 13}
    fake.looks = 0

    def interrupt(looks):
        if looks in cut:
            raise KeyboardInterrupt

    fake.look = interrupt
    for _ in cut:
        with pytest.raises(KeyboardInterrupt):
            run_sweep(sweep, 4, workers=1)
        study, _ = read_settings(sweep.folder, None)
        assert states(study).count(TrialState.RUNNING) == 1
    fake.commands.clear()
    study = run_sweep(sweep, 4, workers=1)
    assert "trial-002" in " ".join(fake.commands[0])  # it goes on with the one that was cut off
    assert len(fake.commands) == 2
    assert states(study) == states(whole) == [TrialState.COMPLETE] * 4
    assert drawn(study) == drawn(whole)
    for one, other in zip(study.get_trials(), whole.get_trials(), strict=True):
        assert one.value == other.value
        assert one.intermediate_values == other.intermediate_values


def test_a_trial_that_finished_while_nobody_looked_is_not_trained_again(fake, tmp_path):
    sweep = small_sweep(tmp_path / "s")
    fake.rows = 1000

    def interrupt(looks):
        if looks == 2:
            raise KeyboardInterrupt

    fake.look = interrupt
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep, 2, workers=1)
    before = (tmp_path / "s" / "trial-000" / "summary.json").stat().st_mtime_ns
    study = run_sweep(sweep, 2, workers=1)
    assert states(study) == [TrialState.COMPLETE] * 2
    assert (tmp_path / "s" / "trial-000" / "summary.json").stat().st_mtime_ns == before


def test_more_trials_can_be_added_later(fake, tmp_path):
    sweep = small_sweep(tmp_path / "s")
    first = drawn(run_sweep(sweep, 1, workers=1))
    study = run_sweep(sweep, 3, workers=1)
    assert drawn(study)[:1] == first
    assert len(fake.commands) == 3


def test_unpromising_trials_are_stopped_early(fake, tmp_path):
    study = run_sweep(small_sweep(tmp_path / "s", prune=True), 12, workers=1)
    finished = [t for t in study.get_trials() if t.state == TrialState.COMPLETE]
    pruned = [t for t in study.get_trials() if t.state == TrialState.PRUNED]
    assert len(finished) >= 5
    assert pruned
    assert sorted(fake.stopped) == [tmp_path / "s" / f"trial-{t.number:03d}" for t in pruned]
    for trial in pruned:
        earlier = [t for t in finished if t.number < trial.number]
        last = max(trial.intermediate_values)
        assert 10 <= last < 40
        median = np.median([t.intermediate_values[last] for t in earlier])
        assert max(trial.intermediate_values.values()) < median


def test_a_trial_that_fails_is_written_down_and_the_sweep_goes_on(fake, tmp_path):
    sweep = small_sweep(tmp_path / "s")

    def fail_in_second(looks):
        fake.code = 2 if len(fake.commands) == 2 else 0
        if fake.code:
            (tmp_path / "s" / "trial-001.log").write_text("words\nloss/total is nan\n")

    fake.look = fail_in_second
    study = run_sweep(sweep, 3, workers=1)
    assert states(study) == [TrialState.COMPLETE, TrialState.FAIL, TrialState.COMPLETE]
    worst = read_outcomes(study, sweep.settings)[-1]
    assert (worst.number, worst.end, worst.note) == (1, "failed", "loss/total is nan")


def test_when_nothing_can_be_trained_the_sweep_stops(fake, tmp_path):
    fake.code = 2
    with pytest.raises(JobFailed, match="trial 2 ended with code 2"):
        run_sweep(small_sweep(tmp_path / "s"), 9, workers=1)
    assert len(fake.commands) == 3


def test_other_settings_are_refused_and_named(fake, tmp_path):
    sweep = small_sweep(tmp_path / "s")
    open_study(sweep.settings, sweep.folder, None)
    other = small_sweep(tmp_path / "s", prune=True).settings
    with pytest.raises(RunError, match=r"prune: False then, True now.*another --out"):
        open_study(other, sweep.folder, None)


def test_a_folder_has_one_sweep_at_a_time(fake, tmp_path):
    sweep = small_sweep(tmp_path / "s")
    sweep.folder.mkdir()
    with (
        acquire_lock(sweep.folder / ".lock", "taken"),
        pytest.raises(RunError, match=r"is being run by another process \(id \d+\)"),
    ):
        run_sweep(sweep, 1, workers=1)


def test_half_a_line_of_the_journal_is_mended(fake, tmp_path):
    sweep = small_sweep(tmp_path / "s")
    run_sweep(sweep, 1, workers=1)
    with (sweep.folder / "journal.log").open("a") as journal:
        journal.write('{"op_code": 4, "worker')
    assert states(run_sweep(sweep, 2, workers=1)) == [TrialState.COMPLETE] * 2


def test_any_storage_of_optuna_will_do(fake, tmp_path):
    sweep = small_sweep(tmp_path / "s", storage=f"sqlite:///{tmp_path / 'all.db'}")
    study = run_sweep(sweep, 1, workers=1)
    elsewhere = study.ask()  # another machine is at work on the second trial
    study = run_sweep(sweep, 3, workers=1)
    assert states(study) == [TrialState.COMPLETE, TrialState.RUNNING, TrialState.COMPLETE]
    assert elsewhere.number == 1
    assert not (sweep.folder / "journal.log").exists()
    assert len(read_outcomes(*read_settings(sweep.folder, sweep.storage))) == 3


def test_progress_is_measured_on_parts_that_are_complete(tmp_path):
    with Run.create(tmp_path / "run", {}, []) as run, run.metrics(None) as metrics:
        for step, value in ((50, 1.0), (100, 3.0), (150, 5.0), (210, 7.0), (380, 9.0)):
            metrics.write(step, {"episode_return": value})
    # 40 parts of 100 steps: the third holds one row, the fourth is not complete.
    assert progress_values(tmp_path / "run", "return", 4000) == {1: 2.0, 2: 5.0, 3: 7.0}
    assert progress_values(tmp_path / "run", "success", 4000) == {}
    assert progress_values(tmp_path / "nowhere", "return", 4000) == {}


def test_the_results_are_files_of_all_trials(fake, tmp_path):
    sweep = small_sweep(tmp_path / "s", prune=True)
    study = run_sweep(sweep, 12, workers=1)
    files = write_sweep(study, sweep.settings, tmp_path / "out")
    assert [path.name for path in files] == [
        "trials.csv",
        "curves.csv",
        "importance.csv",
        "sweep.png",
    ]
    rows = read_csv(tmp_path / "out" / "trials.csv")
    assert sorted(row["trial"] for row in rows) == list(range(12))
    values = [row["value"] for row in rows]
    assert values == sorted(values, reverse=True)
    assert {row["end"] for row in rows} == {"finished", "pruned"}
    assert all((row["env_steps"] == STEPS) == (row["end"] == "finished") for row in rows)
    curves = read_csv(tmp_path / "out" / "curves.csv")
    assert len({row["trial"] for row in curves}) == 12
    assert read_csv(tmp_path / "out" / "importance.csv") == [
        {"setting": "optimizer.learning_rate", "importance": 1.0}
    ]


def test_the_setting_that_matters_is_found_among_finished_and_pruned_trials():
    study = optuna.create_study(direction="maximize")
    rng = np.random.default_rng(0)
    uniform = optuna.distributions.FloatDistribution(0, 1)
    spaces: dict[str, Any] = {"matters": uniform, "idle": uniform}
    for number in range(20):
        values = {name: float(rng.random()) for name in spaces}
        state = TrialState.PRUNED if number % 2 else TrialState.COMPLETE
        study.add_trial(
            optuna.trial.create_trial(
                params=values, distributions=spaces, value=values["matters"] ** 2, state=state
            )
        )
    importance = setting_importance(study)
    assert importance["matters"] > 0.8
    assert sum(importance.values()) == pytest.approx(1)
    few = optuna.create_study(direction="maximize")
    few.add_trials(study.get_trials()[:7])
    assert setting_importance(few) == {}


def said(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["sweep", *arguments])
    assert ended.value.code == 2
    captured = capsys.readouterr()
    return " ".join((captured.err + captured.out).replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["chian"], "did you mean 'chain'?"),
        (["chain", "--trials", "0"], "trials is 0"),
        (["chain", "--metric", "sucess"], "did you mean 'success'?"),
        (["chain", "--sweep", "reward.alfa=log:1:2"], "did you mean 'reward.alpha'?"),
        (["chain", "--sweep", "agent.discount=uniform:0.5:1.5"], "discount is 1.5; it must lie in"),
        (["chain", "--seeds", "3"], "--seeds is no flag of a sweep"),
        (["chain", "--optimizer.learning-rte", "1"], "--optimizer.learning-rate"),
        (["show", "nowhere"], "there is no sweep nowhere"),
    ],
)
def test_mistakes_are_answered_before_anything_is_trained(
    capsys, monkeypatch, tmp_path, arguments, answer
):
    monkeypatch.chdir(tmp_path)
    assert answer in said(capsys, *arguments)
    assert not (tmp_path / "sweeps").exists()


def test_the_command_line_sweeps_and_shows(fake, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fake.install(monkeypatch)
    command = ["sweep", "chain", "--steps", str(STEPS), "--trials", "2", "--workers", "1"]
    main(
        [*command, "--sweep", "optimizer.learning_rate=log:1e-4:1", "--seed", "5", "--preset=fast"]
    )
    shown = capsys.readouterr().out
    assert "learning rate" in shown
    assert "sweeps/chain-fast/sweep.png" in shown
    seeds = [Run.open(path).config["seed"] for path in sorted(tmp_path.glob("sweeps/*/trial-*/"))]
    assert seeds == [5, 6]
    main(["sweep", "show", "sweeps/chain-fast", "--out", "results"])
    assert len(read_csv(tmp_path / "results" / "trials.csv")) == 2


@pytest.mark.slow
def test_a_sweep_survives_being_killed(tmp_path):
    """Killed with its training half done, it leaves no process behind, and goes on later."""
    folder = tmp_path / "s"
    command = [sys.executable, "-m", "synthetic_returns", "sweep", "chain", *SMALL_FLAGS]
    command += ["--steps", "6000", "--trials", "2", "--workers", "1", "--out", str(folder)]
    command += [
        "--sweep",
        "optimizer.learning_rate=log:1e-4:1e-2",
        "--reporting.checkpoint-every",
        "0",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    metrics = folder / "trial-000" / "metrics.csv"
    deadline = time.monotonic() + 300
    while not metrics.exists() or not len(read_metrics(metrics)["env_steps"]):
        assert time.monotonic() < deadline, "training never began"
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    rows = len(read_metrics(metrics)["env_steps"])
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    study, _ = read_settings(folder, None)
    assert states(study) == [TrialState.COMPLETE] * 2
    assert rows < len(read_metrics(metrics)["env_steps"])
    summary = json.loads((folder / "trial-000" / "summary.json").read_text())
    assert summary["env_steps"] == 6000
