"""The way to ``train``, ``view`` and the wrappers needs nothing that only Linux has."""

import os
import signal
import sys
import types
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from synthetic_returns.training.runs import Run, RunError
from synthetic_returns.training.trainer import train
from synthetic_returns.utils import files, process_memory
from synthetic_returns.utils.files import acquire_lock, is_locked
from synthetic_returns.utils.process_memory import machine_bytes, resident_mb
from synthetic_returns.viewer.view_run import record_run, write_run_view
from synthetic_returns.wrappers.vector import SyntheticReturnsVectorWrapper
from tests.small import small_config
from tests.wrappers.small import METHOD

LINUX = ("sched_getaffinity", "sched_setaffinity", "sysconf", "fork", "mkfifo", "killpg", "setsid")


@pytest.fixture
def elsewhere(monkeypatch):
    """Neither processor affinity nor ``/proc``, nor the modules and signals of Unix."""
    for name in LINUX:
        monkeypatch.delattr(os, name, raising=False)
    for name in ("SIGKILL", "SIGALRM", "SIGHUP", "SIGUSR1"):
        monkeypatch.delattr(signal, name, raising=False)
    for name in ("fcntl", "resource", "pwd", "grp"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it is an ImportError
    monkeypatch.setattr(process_memory, "_STATM", Path("/nowhere/statm"))


@pytest.fixture
def windows(elsewhere, monkeypatch):
    """Locks of bytes, and folders that cannot be opened."""
    locked: set[str] = set()

    def locking(descriptor: int, mode: int, length: int) -> None:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        if name in locked:
            raise PermissionError("locked")
        locked.add(name)

    fake = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    monkeypatch.setattr(files, "sys", types.SimpleNamespace(platform="win32"))


def test_train_view_and_wrap_elsewhere(elsewhere, tmp_path):
    config = small_config("episodic", {"engine.devices": 0})
    run = train(config, out=tmp_path / "run")
    assert run.summary()["env_steps"] == 80
    assert write_run_view(record_run(run.path, 1), tmp_path / "view.html").stat().st_size
    env = gymnasium.make_vec("synthetic_returns/Chain-v0", num_envs=2)
    env = SyntheticReturnsVectorWrapper(env, method=METHOD, max_episode_steps=20)
    env.reset(seed=0)
    for _ in range(20):
        env.step(np.zeros(2, int))
    env.save(tmp_path / "credit.npz")
    env.load(tmp_path / "credit.npz")


def test_where_nobody_knows_locks_a_run_is_written_on_trust(elsewhere, tmp_path):
    with Run.create(tmp_path / "run", {}, ["train"]):
        Run.open(tmp_path / "run", write=True).close()


def test_windows_locks_bytes(windows, tmp_path):
    path = tmp_path / ".lock"
    with acquire_lock(path, "taken by {owner}"):
        assert is_locked(path)
        with pytest.raises(RunError, match=f"taken by {os.getpid()}"):
            acquire_lock(path, "taken by {owner}")


def test_where_nobody_tells_memory_is_guessed(elsewhere):
    assert np.isnan(resident_mb())
    assert machine_bytes() == 16 << 30
