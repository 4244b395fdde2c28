"""The run directory: never overwritten, one writer, readable errors."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.training import runs
from synthetic_returns.training.runs import Run, RunError, default_run_path

COMMAND = ["synthetic-returns", "train", "catch"]
CONFIG = {"task": "catch", "learning_rate": 2e-4, "hidden": [128, 128], "clip": float("inf")}
SUMMARY = {
    "env_steps": 100,
    "wall_s": 2.5,
    "eval": {"return_mean": 0.5, "return_low": 0.0, "return_high": 1.0},
}
OLD, NEW = SUMMARY | {"version": "old"}, SUMMARY | {"version": "new"}

# Creates a run, says so, and holds it until it is killed.
HOLD_RUN = """
import sys, time
from synthetic_returns.training.runs import Run
run = Run.create(sys.argv[1], {}, [])
print("created", flush=True)
time.sleep(60)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "first"


def test_a_run_remembers_how_it_was_started(path):
    Run.create(path, CONFIG, COMMAND).close()
    run = Run.open(path)
    assert run.config == CONFIG
    assert run.command == COMMAND
    document = json.loads((path / "config.json").read_text())
    assert document["format"] == 1
    assert document["version"] == run.version != ""
    assert document["created"] == run.created
    assert run.created.endswith("+00:00")


def test_config_in_memory_is_what_a_resumed_run_will_read(path):
    config = {"sizes": (1, np.int64(2)), "out": Path("there")}
    with Run.create(path, config, COMMAND) as created:
        assert created.config == Run.open(path).config == {"sizes": [1, 2], "out": "there"}


def test_an_unwritable_config_leaves_nothing_behind(path):
    with pytest.raises(TypeError, match=r"of type object cannot.*asdict"):
        Run.create(path, {"activation": object()}, COMMAND)
    assert not path.exists()


@pytest.mark.parametrize("content", ["config.json", "notes.txt", ".hidden"])
def test_create_never_overwrites(path, content):
    path.mkdir(parents=True)
    (path / content).write_text("mine")
    with pytest.raises(FileExistsError, match=r"first already holds.*--out.*--resume"):
        Run.create(path, CONFIG, COMMAND)
    assert [entry.name for entry in path.iterdir()] == [content]
    assert (path / content).read_text() == "mine"


def test_create_refuses_a_file_and_accepts_an_empty_directory(path):
    path.parent.mkdir()
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="already holds"):
        Run.create(path, CONFIG, COMMAND)
    path.unlink()
    path.mkdir()
    with Run.create(path, CONFIG, COMMAND) as run:
        assert run.config == CONFIG


def test_a_second_create_fails_while_the_first_runs_and_after_it(path):
    first = Run.create(path, {"mine": 1}, COMMAND)
    for _ in range(2):
        with pytest.raises(FileExistsError, match="already holds"):
            Run.create(path, {"mine": 2}, COMMAND)
        first.close()
    assert Run.open(path).config == {"mine": 1}


def test_of_many_simultaneous_creates_one_wins(path):
    def attempt(number):
        try:
            return Run.create(path, {"number": number}, COMMAND)
        except (FileExistsError, RunError):
            return None

    with ThreadPoolExecutor(16) as pool:
        winners = [run for run in pool.map(attempt, range(64)) if run is not None]
    for run in winners:
        run.close()
    assert len(winners) == 1
    assert Run.open(path).config == winners[0].config


def test_create_notices_a_run_that_came_and_went_since_it_looked(path, monkeypatch):
    real_lock = runs._acquire_lock

    def lock_after_another_run(path):
        monkeypatch.setattr(runs, "_acquire_lock", real_lock)
        Run.create(path, {"mine": 1}, COMMAND).close()
        return real_lock(path)

    monkeypatch.setattr(runs, "_acquire_lock", lock_after_another_run)
    with pytest.raises(FileExistsError, match="already holds"):
        Run.create(path, {"mine": 2}, COMMAND)
    assert Run.open(path).config == {"mine": 1}


def test_default_paths_are_numbered_and_new(tmp_path):
    root = tmp_path / "runs"
    assert default_run_path(root, "catch", "paper") == root / "catch-paper-001"
    assert default_run_path(root, "catch", "paper") == root / "catch-paper-002"
    assert default_run_path(root, "catch") == root / "catch-001"
    assert default_run_path(root, "ALE/Skiing-v5") == root / "ALE-Skiing-v5-001"
    (root / "catch-paper-1041").mkdir()
    (root / "catch-paper-001").rmdir()  # a number is not used again while later ones exist
    assert default_run_path(root, "catch", "paper") == root / "catch-paper-1042"


def test_default_path_stays_below_its_root(tmp_path):
    root = tmp_path / "runs"
    assert default_run_path(root, "../up", "../../x").parent == root


def test_default_paths_of_simultaneous_starts_differ(tmp_path):
    with ThreadPoolExecutor(16) as pool:
        paths = list(pool.map(lambda _: default_run_path(tmp_path, "chain"), range(64)))
    assert len(set(paths)) == 64


def test_default_path_skips_a_directory_made_since_it_looked(tmp_path, monkeypatch):
    (tmp_path / "chain-001").mkdir()
    monkeypatch.setattr(Path, "iterdir", lambda _: iter(()))
    assert default_run_path(tmp_path, "chain") == tmp_path / "chain-002"


def test_open_names_what_is_wrong(path):
    with pytest.raises(FileNotFoundError, match=r"first.*no such directory"):
        Run.open(path)
    path.mkdir(parents=True)
    with pytest.raises(RunError, match=r"first is not a run directory.*config\.json"):
        Run.open(path)
    (path / "config.json").write_text('{"format": 1, "conf')
    with pytest.raises(RunError, match=r"config\.json is damaged or half-written.*start a new run"):
        Run.open(path)
    (path / "config.json").write_text("[1]")
    with pytest.raises(RunError, match="holds a list"):
        Run.open(path)
    (path / "config.json").write_text('{"format": 1}')
    with pytest.raises(RunError, match=r"lacks 'version'"):
        Run.open(path)


@pytest.mark.parametrize(("found", "named"), [(2, "format 2"), (None, "format None")])
def test_open_refuses_other_formats(path, found, named):
    Run.create(path, CONFIG, COMMAND).close()
    document = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(document | {"format": found, "version": "9.8.7"}))
    with pytest.raises(RunError, match=rf"{named} .*reads format 1.*9\.8\.7"):
        Run.open(path)


def test_open_suggests_the_run_that_was_meant(path):
    Run.create(path, CONFIG, COMMAND).close()
    (path / "checkpoints").mkdir()
    for near in (path / "checkpoints", path.parent, path / "config.json"):
        with pytest.raises(RunError, match=r"did you mean .*runs/first\?"):
            Run.open(near)


def test_one_writer_many_readers(path):
    with Run.create(path, CONFIG, COMMAND):
        with pytest.raises(RunError, match=rf"another process \(id {os.getpid()}\)"):
            Run.open(path, write=True)
        assert Run.open(path).config == CONFIG
    refused = pytest.raises(RunError, match=rf"another process \(id {os.getpid()}\)")
    with Run.open(path, write=True), refused:
        Run.open(path, write=True)
    Run.open(path, write=True).close()


def test_a_failed_create_releases_its_lock(path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("synthetic_returns.training.runs.write_atomically", fail)
        with pytest.raises(OSError, match="disk full"):
            Run.create(path, CONFIG, COMMAND)
    Run.create(path, CONFIG, COMMAND).close()


def test_the_lock_dies_with_its_process(path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD_RUN, str(path)], stdout=subprocess.PIPE)
    with holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"created\n"
            with pytest.raises(RunError, match=rf"id {holder.pid}\)"):
                Run.open(path, write=True)
        finally:
            holder.send_signal(signal.SIGKILL)
    Run.open(path, write=True).close()


def test_a_reader_cannot_write(path):
    Run.create(path, CONFIG, COMMAND).close()
    run = Run.open(path)
    with pytest.raises(RunError, match="write=True"):
        run.metrics(None)
    with pytest.raises(RunError, match="write=True"):
        run.write_summary({})
    assert not (path / "summary.json").exists()
    assert not (path / "metrics.csv").exists()


def test_summary_is_portable_json(path):
    with Run.create(path, CONFIG, COMMAND) as run:
        with pytest.raises(RunError, match=r"summary\.json: it has not finished.*--resume"):
            run.summary()
        result = SUMMARY["eval"] | {"return_mean": np.float32(0.5), "return_low": float("nan")}
        run.write_summary(SUMMARY | {"eval": result, "n": jnp.arange(2)})
    text = (path / "summary.json").read_text()
    assert json.loads(text)["eval"] == {"return_mean": 0.5, "return_low": None, "return_high": 1.0}
    assert json.loads(text)["n"] == [0, 1]
    assert np.isnan(run.summary()["eval"]["return_low"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eval": 3}, "has no evaluation"),
        ({"eval": {}}, r"eval.return_mean of .*summary.json is None and must be a number"),
        ({"env_steps": "many"}, "env_steps of .* is 'many' and must be a number"),
    ],
)
def test_a_summary_without_its_numbers_is_refused(path, change, message):
    with Run.create(path, CONFIG, COMMAND) as run:
        run.write_summary(SUMMARY | change)
    with pytest.raises(RunError, match=message):
        run.summary()


def test_a_failed_write_keeps_the_old_file(path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    with Run.create(path, CONFIG, COMMAND) as run:
        run.write_summary(OLD)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            with pytest.raises(OSError, match="disk full"):
                run.write_summary(NEW)
        assert run.summary() == OLD


def test_files_are_replaced_and_not_written_over(path):
    with Run.create(path, CONFIG, COMMAND) as run:
        run.write_summary(OLD)
        (path / "old.json").hardlink_to(path / "summary.json")
        run.write_summary(NEW)
    assert json.loads((path / "old.json").read_text()) == OLD
    assert run.summary() == NEW


def test_metrics_live_in_the_run(path):
    with Run.create(path, CONFIG, COMMAND) as run:
        with pytest.raises(RunError, match="before its first row"):
            run.read_metrics()
        with run.metrics(None) as metrics:
            metrics.write(10, {"loss": 1.5})
        assert list(run.read_metrics()["loss"]) == [1.5]
    assert list((path / "tensorboard").glob("events.*"))


def test_importing_runs_is_light():
    heavy = "{'orbax.checkpoint', 'tensorboardX'}"
    program = f"import sys, synthetic_returns.training.runs; print({heavy} & set(sys.modules))"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert output.stdout.strip() == b"set()"


def test_changed_settings_are_what_the_next_one_reads(path):
    Run.create(path, CONFIG, COMMAND).close()
    with pytest.raises(RunError, match="reading only"):
        Run.open(path).change_config(CONFIG)
    with Run.open(path, write=True) as run:
        run.change_config(CONFIG | {"learning_rate": 1e-3})
        created = run.created
    again = Run.open(path)
    assert again.config == CONFIG | {"learning_rate": 1e-3}
    assert (again.command, again.created) == (COMMAND, created)
