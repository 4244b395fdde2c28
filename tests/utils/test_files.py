"""Files where the system is not POSIX; on POSIX, ``test_runs`` and ``test_metrics`` use them."""

import os
import sys
import types

import pytest

from synthetic_returns.utils.files import RunError, acquire_lock, write_atomically


@pytest.fixture
def windows(monkeypatch):
    """What differs on Windows: no fcntl, directories cannot be opened; gives the locked files."""
    locked = set()

    def locking(descriptor, mode, size):
        place = (os.fstat(descriptor).st_ino, os.lseek(descriptor, 0, os.SEEK_CUR), mode, size)
        if place in locked:
            raise PermissionError(13, "Permission denied")
        locked.add(place)

    def open_file(path, flags, *rest):
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied")
        return posix_open(path, flags, *rest)

    posix_open = os.open
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setitem(sys.modules, "fcntl", None)  # an import of it fails
    fake = types.SimpleNamespace(LK_NBLCK=2, locking=locking)
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    return locked


def test_windows_files_are_replaced(windows, tmp_path):
    path = tmp_path / "text"
    for text in ("one", "two"):
        write_atomically(path, text)
        assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_windows_locks_are_taken_once_and_name_their_owner(windows, tmp_path):
    path = tmp_path / "lock"
    with acquire_lock(path, "taken by {owner}"):
        assert path.read_bytes() == str(os.getpid()).encode()
        ((_, place, _, _),) = windows
        assert place > 100  # behind the content: others may not read what is locked
        with pytest.raises(RunError, match=f"taken by {os.getpid()}"):
            acquire_lock(path, "taken by {owner}")
    with acquire_lock(tmp_path / "other", "taken"):
        pass
