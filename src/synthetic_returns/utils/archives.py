"""NumPy archives that somebody else may have written.

What an archive says about its arrays is checked before anything of their size is reserved: a file
of a few kilobytes can claim, or unpack to, more than a machine holds. Nothing in it is executed:
arrays of objects, which would have to be unpickled, are refused.
"""

import contextlib
import dataclasses
import io
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from synthetic_returns.utils.files import RunError
from synthetic_returns.utils.process_memory import machine_bytes

__all__ = ["ArrayArchive", "Declared", "Rows", "check_room", "open_arrays", "read_arrays"]

_SUFFIX = ".npy"
_UNPACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # all that NumPy writes


@dataclasses.dataclass(frozen=True)
class Declared:
    """What an archive says about one of its arrays.

    Attributes:
      shape: of the array.
      dtype: of its numbers.
    """

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def check_room(size: int, what: str) -> None:
    """Refuses what would take more than half of the memory of this machine.

    Args:
      size: in bytes.
      what: would take it, for the message.
    """
    if size > machine_bytes() / 2:
        raise RunError(
            f"{what} would take {size / 1e9:,.1f} GB and this machine has "
            f"{machine_bytes() / 1e9:,.1f} GB: use a larger one, or another file"
        )


def read_arrays(file: Path | io.BytesIO, remedy: str) -> dict[str, np.ndarray]:
    """All arrays of an archive, by name.

    Args:
      file: the archive.
      remedy: what to do if it cannot be read, for the message.
    """
    with open_arrays(file, remedy) as archive:
        size = sum(archive.declared(name).nbytes for name in archive.names)
        check_room(size, f"{archive.name}, unpacked,")
        return {name: archive.read(name) for name in archive.names}


@contextlib.contextmanager
def open_arrays(file: Path | io.BytesIO, remedy: str) -> "Iterator[ArrayArchive]":
    """An archive, whose arrays can be read one by one; whatever is wrong with it is a RunError.

    Args:
      file: the archive.
      remedy: what to do if it cannot be read, for the message.
    """
    name = str(file) if isinstance(file, Path) else "the archive"
    if isinstance(file, Path) and file.exists() and not file.is_file():
        raise RunError(f"{name} is not a file: {remedy}")
    try:
        with zipfile.ZipFile(file) as opened:
            yield ArrayArchive(opened, name)
    except (RunError, FileNotFoundError):
        raise
    # Damage makes the two libraries stumble in a dozen ways, each with an exception of its own.
    except Exception as error:
        raise RunError(f"{name} is damaged, or no NumPy archive ({error!r}): {remedy}") from error


class ArrayArchive:
    """An open archive.

    Attributes:
      name: of the file.
      names: of its arrays.
    """

    def __init__(self, archive: zipfile.ZipFile, name: str):
        """Reads the list of what is in it."""
        self._archive, self.name = archive, name
        self._members = {x.filename.removesuffix(_SUFFIX): x for x in archive.infolist()}
        self.names = tuple(self._members)
        if len(self.names) != len(archive.infolist()):
            raise RunError(f"{name} holds two arrays of the same name: write it again")

    def declared(self, name: str) -> Declared:
        """What it says about an array, if that can be true."""
        member = self._members[name]
        if member.compress_type not in _UNPACKED:
            raise RunError(f"{name} in {self.name} is packed as NumPy does not: write it again")
        with self._archive.open(member) as file:
            declared, _ = _read_header(file, f"{name} in {self.name}")
            size = member.file_size - file.tell()
        if declared.nbytes != size:
            raise RunError(
                f"{name} in {self.name} says that it is {declared}, {declared.nbytes:,} bytes, and "
                f"it has {size:,}: write it again"
            )
        return declared

    def read(self, name: str) -> np.ndarray:
        """One array."""
        check_room(self.declared(name).nbytes, f"{name} in {self.name}")
        with self._archive.open(self._members[name]) as file:
            return np.lib.format.read_array(file, allow_pickle=False)

    def rows(self, name: str) -> "Rows":
        """One array, to be read row by row."""
        self.declared(name)  # checked
        return Rows(self._archive.open(self._members[name]), f"{name} in {self.name}")


class Rows:
    """An array of an archive that is read row by row.

    Attributes:
      count: how many rows there are.
    """

    def __init__(self, file: Any, name: str):
        """Reads the header.

        Args:
          file: the array.
          name: what it is called in messages.
        """
        declared, fortran = _read_header(file, name)
        if fortran or not declared.shape:
            raise RunError(
                f"{name} is an array of {declared}{' in Fortran order' if fortran else ''}; it "
                "must have rows, in C order: write it with np.ascontiguousarray, ragged ones with "
                "np.concatenate"
            )
        self._file, self._name = file, name
        self.count, *shape = declared.shape
        self._row = Declared(tuple(shape), declared.dtype)

    def take(self, rows: int) -> np.ndarray:
        """The next rows."""
        check_room(rows * self._row.nbytes, f"{rows:,} rows of {self._name}")
        data = self._file.read(rows * self._row.nbytes)
        return np.frombuffer(data, self._row.dtype).reshape(rows, *self._row.shape)

    def take_all(self) -> np.ndarray:
        """All rows."""
        return self.take(self.count)


def _read_header(file: Any, name: str) -> tuple[Declared, bool]:
    """Shape and type of an array, and whether it is in Fortran order."""
    version = np.lib.format.read_magic(file)
    read: Any = np.lib.format.read_array_header_2_0
    if version == (1, 0):
        read = np.lib.format.read_array_header_1_0
    shape, fortran, dtype = read(file)
    if dtype.kind not in "biufU" or any(size < 0 for size in shape):
        raise RunError(
            f"{name} is an array of {dtype}{list(shape)}; it must hold numbers: write it again, "
            "ragged arrays with np.concatenate"
        )
    return Declared(tuple(int(size) for size in shape), dtype), fortran
