"""Training runs side by side: what their processes are told."""

import subprocess
from pathlib import Path

import pytest

from synthetic_returns.training import jobs
from synthetic_returns.training.jobs import Job, run_jobs

CACHE = "JAX_COMPILATION_CACHE_DIR"


class Finished(subprocess.Popen):
    """A process that ended at once."""

    def __init__(self, returncode: int):
        self.pid, self.returncode = 0, returncode

    def poll(self) -> int:
        return self.returncode


def started(monkeypatch, root: Path, returncode=0) -> list[dict[str, str]]:
    """The environments of the processes that are started for two runs of two experiments."""
    environments = []

    def start(command, *, env, **_):
        environments.append(env)
        return Finished(returncode)

    monkeypatch.setattr(jobs.subprocess, "Popen", start)
    monkeypatch.setattr(jobs, "pin", lambda *_: None)
    monkeypatch.setattr(jobs, "POLL_SECONDS", 0)
    outs = [root / folder / "seed0" for folder in ("one", "two")]
    run_jobs([Job(out.parent.name, ("chain",), out, steps=10) for out in outs])
    return environments


def test_runs_share_compiled_code(monkeypatch, tmp_path):
    monkeypatch.delenv(CACHE, raising=False)
    environments = started(monkeypatch, tmp_path)
    assert [env[CACHE] for env in environments] == [str(tmp_path / ".compiled")] * 2
    assert all("PATH" in env for env in environments)


def test_a_cache_of_the_user_is_used(monkeypatch, tmp_path):
    monkeypatch.setenv(CACHE, "elsewhere")
    assert {env[CACHE] for env in started(monkeypatch, tmp_path)} == {"elsewhere"}


def test_a_job_that_fails_says_its_last_words(monkeypatch, tmp_path):
    with pytest.raises(jobs.JobFailed, match="one ended with code 3"):
        started(monkeypatch, tmp_path, returncode=3)
