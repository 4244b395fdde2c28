"""The arrays of a checkpoint, as Orbax stores them."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from synthetic_returns.utils.archives import Declared

__all__ = ["StoredArrays", "open_stored", "store_arrays"]


class StoredArrays:
    """What lies in a directory.

    Attributes:
      declared: the shape and type of each array, by its name.
    """

    def __init__(self, path: Path, orbax: Any, checkpointer: Any):
        self._path, self._orbax, self._checkpointer = path, orbax, checkpointer
        metadata = checkpointer.metadata(path)
        # Older versions say it without a frame.
        metadata = getattr(metadata, "item_metadata", metadata)
        tree = getattr(metadata, "tree", metadata)
        self.declared = {
            name: Declared(tuple(x.shape), np.dtype(x.dtype)) for name, x in tree.items()
        }

    def read(self) -> dict[str, Any]:
        """All arrays, by name."""
        return self._checkpointer.restore(self._path, args=self._orbax.args.StandardRestore())


def store_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays into a directory that does not exist yet."""
    with _checkpointer() as (orbax, checkpointer):
        checkpointer.save(path.absolute(), args=orbax.args.StandardSave(arrays))


@contextlib.contextmanager
def open_stored(path: Path) -> Iterator[StoredArrays]:
    """What ``store_arrays`` wrote, to look at it before it is read."""
    with _checkpointer() as (orbax, checkpointer):
        yield StoredArrays(path.absolute(), orbax, checkpointer)


@contextlib.contextmanager
def _checkpointer() -> Iterator[tuple[Any, Any]]:
    """Orbax, imported at first use because that is slow, and silent on the terminal."""
    import orbax.checkpoint as ocp
    from absl import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        with contextlib.closing(ocp.Checkpointer(ocp.StandardCheckpointHandler())) as found:
            yield ocp, found
    finally:
        logging.set_verbosity(verbosity)
