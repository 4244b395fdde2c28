"""The way to ``train``, ``view`` and the wrappers needs nothing that only Linux has."""

import errno
import json
import os
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

from synthetic_returns.training.runs import Run, RunError
from synthetic_returns.training.trainer import train
from synthetic_returns.utils import files, process_memory
from synthetic_returns.utils.files import acquire_lock, is_locked
from synthetic_returns.utils.process_memory import machine_bytes, peak_mb, resident_mb
from tests.elsewhere import MODULES
from tests.small import small_config


@pytest.fixture
def elsewhere(monkeypatch):
    """Neither ``/proc`` nor the modules of Unix."""
    monkeypatch.delattr(os, "sysconf")
    for name in MODULES:
        monkeypatch.setitem(sys.modules, name, None)  # importing it is an ImportError
    for name in ("_STATM", "_STATUS"):
        monkeypatch.setattr(process_memory, name, Path("/nowhere"))


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


def test_train_view_and_wrap_elsewhere(tmp_path):
    strict = {"PYTHONWARNDEFAULTENCODING": "1", "PYTHONIOENCODING": "cp1252:strict"}
    command = [sys.executable, "-m", "tests.elsewhere", str(tmp_path)]
    done = subprocess.run(command, env=os.environ | strict, capture_output=True, check=False)
    assert not done.returncode, done.stderr.decode(errors="replace")
    assert json.loads((tmp_path / "run/summary.json").read_text())["env_steps"] == 80
    assert (tmp_path / "run/view.html").stat().st_size
    assert (tmp_path / "credit.npz").stat().st_size


def test_where_nobody_knows_locks_a_run_is_written_on_trust(elsewhere, tmp_path):
    with Run.create(tmp_path / "run", {}, ["train"]):
        Run.open(tmp_path / "run", write=True).close()


def test_windows_locks_bytes(windows, tmp_path):
    path = tmp_path / ".lock"
    with acquire_lock(path, "taken by {owner}"):
        assert is_locked(path)
        with pytest.raises(RunError, match=f"taken by {os.getpid()}"):
            acquire_lock(path, "taken by {owner}")


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP])
def test_on_a_disk_without_locks_a_run_is_written_on_trust(monkeypatch, tmp_path, code):
    def flock(*arguments: object) -> None:
        raise OSError(code, os.strerror(code))

    fake = types.SimpleNamespace(flock=flock, LOCK_EX=2, LOCK_NB=4)
    monkeypatch.setitem(sys.modules, "fcntl", fake)
    with Run.create(tmp_path / "run", {}, ["train"]):
        Run.open(tmp_path / "run", write=True).close()


def test_where_no_signals_can_be_caught_training_goes_on_without(tmp_path):
    runs: list[Run] = []
    config = small_config("none")
    thread = threading.Thread(target=lambda: runs.append(train(config, out=tmp_path / "run")))
    thread.start()
    thread.join()
    assert runs[0].summary()["env_steps"] == 80


def test_where_nobody_tells_memory_is_guessed(elsewhere):
    assert np.isnan(resident_mb())
    assert np.isnan(peak_mb())
    assert machine_bytes() == 16 << 30
