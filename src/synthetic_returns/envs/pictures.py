"""Small pictures of one pixel a cell, made large enough for people."""

import numpy as np

__all__ = ["enlarge"]

_LINE = np.uint8(70)


def enlarge(pixels: np.ndarray, width: int = 440) -> np.ndarray:
    """Draws each cell as a square with a thin line around it.

    Args:
      pixels: ``[rows, columns, 3]``, one pixel a cell.
      width: the width to aim at; a square has at least 8 pixels.
    """
    side = max(8, width // pixels.shape[1])
    large = pixels.repeat(side, axis=0).repeat(side, axis=1)
    large[::side] = _LINE
    large[:, ::side] = _LINE
    return np.pad(large, ((0, 1), (0, 1), (0, 0)), constant_values=_LINE)
