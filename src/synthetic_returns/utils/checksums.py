"""Checksums of files, to tell whether they have changed."""

import zlib
from pathlib import Path

__all__ = ["checksum", "checksums"]


def checksum(path: Path) -> int:
    """The checksum of a file that may be larger than memory."""
    found = 0
    with path.open("rb") as file:
        while part := file.read(2**24):
            found = zlib.crc32(part, found)
    return found


def checksums(directory: Path) -> dict[str, int]:
    """A checksum of every file in a directory, by its relative path."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): checksum(path) for path in files}
