"""Padded episodes as they are written to files: one after another, without the padding."""

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["flaw", "packed", "unpack"]


def packed(
    where: str, padded: Mapping[str, np.ndarray], length: np.ndarray
) -> dict[str, np.ndarray]:
    """The arrays of a file.

    Args:
      where: what their names begin with.
      padded: what is kept of the episodes, ``[episodes, steps, ...]``.
      length: steps of each episode.
    """
    return {f"{where}/{name}": x[_held(x, length, name)] for name, x in padded.items()}


def unpack(
    where: str,
    file: Mapping[str, np.ndarray],
    padded: Mapping[str, np.ndarray],
    length: np.ndarray,
) -> None:
    """Writes the arrays of a file into padded ones; see ``packed``."""
    for name, x in padded.items():
        x[_held(x, length, name)] = file[f"{where}/{name}"]


def flaw(
    where: str, file: Mapping[str, np.ndarray], padded: Mapping[str, Any], length: np.ndarray
) -> str | None:
    """What of a file does not fit into padded arrays of these shapes and types, if anything."""
    for name, x in padded.items():
        states = int(length.sum()) + (np.count_nonzero(length) if name == "observation" else 0)
        wanted = ((states, *x.shape[2:]), x.dtype)
        found = file.get(f"{where}/{name}", np.zeros(0))
        if (found.shape, found.dtype) != wanted:
            return f"{where}/{name} is {found.dtype}{list(found.shape)}, not {wanted}"
    return None


def _held(x: np.ndarray, length: np.ndarray, name: str) -> np.ndarray:
    """Where an array holds anything: one more state than steps."""
    states = length + (length > 0) * (name == "observation")
    return np.arange(x.shape[1])[None] < states[:, None]
