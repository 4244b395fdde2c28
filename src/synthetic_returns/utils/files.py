"""Writing files so that a crash leaves the old content or the new one, never half of it."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = [
    "RunError",
    "acquire_lock",
    "is_locked",
    "replacing",
    "sync_directory",
    "write_atomically",
]

_LOCKED_BYTE = 1 << 30  # on Windows, far behind the content: nobody else can read what is locked


class RunError(ValueError):
    """A run directory, or something in it, cannot be used; the message says what to do."""


def write_atomically(path: Path, text: str) -> None:
    """Replaces the whole content of a file in one step."""
    with replacing(path) as file:
        file.write(text.encode())


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of ``path`` when all is written."""
    # One writer per run (see ``runs``), so a fixed name is safe and leaves no litter to collect.
    unfinished = path.with_name(f".{path.name}.unfinished")
    with unfinished.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Makes the renames in a directory survive a power failure."""
    if sys.platform == "win32":
        return  # directories cannot be opened there
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def acquire_lock(path: Path, taken: str) -> BinaryIO:
    """Takes a lock file; the system releases it when it is closed, or the process dies.

    Args:
      path: the file.
      taken: what to say if another process has it; ``{owner}`` becomes the id of that process.
    """
    file = path.open("a+b")
    if not _lock(file):
        file.seek(0)
        owner = file.read().decode() or "unknown"
        file.close()
        raise RunError(taken.format(owner=owner))
    file.truncate(0)
    file.write(str(os.getpid()).encode())
    file.flush()
    return file


def is_locked(path: Path) -> bool:
    """Whether a process has taken a lock file."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return not _lock(file)  # and given back at once


def _lock(file: BinaryIO) -> bool:
    """Locks a file unless another process has done so; returns whether it worked."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(_LOCKED_BYTE)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except (ImportError, OSError):
        return True  # neither this system nor this disk knows locks: one writer is on trust
    return True
