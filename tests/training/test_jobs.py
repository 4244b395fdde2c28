"""Training runs side by side: what their processes are told."""

import subprocess
from pathlib import Path

import pytest

from synthetic_returns.training import jobs
from synthetic_returns.training.job import Job, JobFailed
from synthetic_returns.training.jobs import claim_folder, run_jobs
from synthetic_returns.training.runs import Run, RunError

CACHE = "JAX_COMPILATION_CACHE_DIR"


class Finished(subprocess.Popen):
    """A process that ended at once."""

    def __init__(self, returncode: int):
        self.pid, self.returncode = 0, returncode

    def poll(self) -> int:
        return self.returncode


def start_two(monkeypatch, root: Path, returncode=0, **options) -> tuple[list[dict], dict]:
    """Starts two runs of two experiments: the environments of their processes, what failed."""
    environments = []

    def start(command, *, env, stdout, **_):
        environments.append(env)
        stdout.write(b"there is no task\n")
        return Finished(returncode)

    monkeypatch.setattr(jobs.subprocess, "Popen", start)
    monkeypatch.setattr(jobs, "pin", lambda *_: None)
    monkeypatch.setattr(jobs, "POLL_SECONDS", 0)
    outs = [root / folder / "seed0" for folder in ("one", "two")]
    two = [Job(out.parent.name, ("chain",), out, steps=10) for out in outs]
    return environments, run_jobs(two, **options)


def test_runs_share_compiled_code(monkeypatch, tmp_path):
    monkeypatch.delenv(CACHE, raising=False)
    environments, failed = start_two(monkeypatch, tmp_path)
    assert not failed
    assert [env[CACHE] for env in environments] == [str(tmp_path / ".compiled")] * 2
    assert all("PATH" in env for env in environments)


def test_a_cache_of_the_user_is_used(monkeypatch, tmp_path):
    monkeypatch.setenv(CACHE, "elsewhere")
    environments, _ = start_two(monkeypatch, tmp_path)
    assert {env[CACHE] for env in environments} == {"elsewhere"}


def test_a_job_that_fails_says_its_last_words(monkeypatch, tmp_path):
    with pytest.raises(JobFailed, match="one ended with code 3"):
        start_two(monkeypatch, tmp_path, returncode=3)


def test_jobs_that_fail_can_be_left_behind(monkeypatch, tmp_path, capsys):
    _, failed = start_two(monkeypatch, tmp_path, returncode=3, keep_going=True)
    why = "ended with code 3: there is no task"
    assert {job.name: how for job, how in failed.items()} == {"one": why, "two": why}
    assert f"two  {why}" in capsys.readouterr().err


def test_a_run_that_is_still_being_saved_is_waited_for(monkeypatch, tmp_path):
    """Its parent was killed a moment ago, and it has not noticed yet."""
    writer = Run.create(tmp_path / "one" / "seed0", {}, [])
    waits = []
    monkeypatch.setattr(jobs.time, "sleep", lambda _: (waits.append(1), writer.close()))
    environments, _ = start_two(monkeypatch, tmp_path, workers=1)
    assert len(environments) == 2
    assert waits


def test_a_folder_has_one_process_that_runs_its_jobs(tmp_path):
    with (
        claim_folder(tmp_path / "new", "the sweep"),
        pytest.raises(RunError, match=r"the sweep .* is being run by another process"),
    ):
        claim_folder(tmp_path / "new", "the sweep")
    claim_folder(tmp_path / "new", "the sweep").close()
