"""Pictures of the states of an episode, packed into one image."""

import base64
import io
import math
from typing import Any

import numpy as np
from PIL import Image

__all__ = ["frame_sheet", "frames_of_observations"]

SHEET_WIDTH = 4096  # pixels; browsers refuse to draw images that are much larger


def frame_sheet(frames: np.ndarray) -> dict[str, Any]:
    """All frames in one PNG, row by row, as the viewer's data: address, size of a frame, columns.

    One image compresses better than many, and a page with one decodes faster.
    """
    count, height, width, _ = frames.shape
    columns = max(1, min(count, SHEET_WIDTH // width, math.ceil(math.sqrt(count))))
    rows = math.ceil(count / columns)
    sheet = np.zeros((rows * height, columns * width, 3), np.uint8)
    for index, frame in enumerate(frames):
        y, x = (index // columns) * height, (index % columns) * width
        sheet[y : y + height, x : x + width] = frame
    source = f"data:image/png;base64,{base64.b64encode(_png(sheet)).decode()}"
    return {"source": source, "width": width, "height": height, "columns": columns}


def frames_of_observations(observation: np.ndarray) -> np.ndarray | None:
    """Observations as pictures; None if they do not look like any.

    Args:
      observation: ``[n, H, W]`` or ``[n, H, W, C]`` images, uint8 or floats in [0, 1], in grey, in
        colour, or several grey ones of which the last channel is the newest; or ``[n, D]``
        vectors, which become rows of cells between their smallest and largest value.
    """
    observation = np.asarray(observation)
    if observation.dtype.kind not in "biuf" or observation.ndim not in (2, 3, 4):
        return None
    if observation.ndim == 2:
        pixels = _stretched(observation)[:, None, :, None]
    else:
        pixels = observation if observation.dtype == np.uint8 else _to_bytes(observation)
        pixels = pixels[..., None] if pixels.ndim == 3 else pixels
    if pixels.shape[3] != 3:
        pixels = np.repeat(pixels[..., -1:], 3, axis=3)
    return np.ascontiguousarray(pixels)


def _stretched(values: np.ndarray) -> np.ndarray:
    low, high = np.nanmin(values), np.nanmax(values)
    return _to_bytes((values - low) / max(high - low, 1e-12))


def _to_bytes(shares: np.ndarray) -> np.ndarray:
    known = np.nan_to_num(shares.astype(np.float64))
    return np.round(np.clip(known, 0, 1) * 255).astype(np.uint8)


def _png(pixels: np.ndarray) -> bytes:
    """The boards of our tasks have few colours, and a palette of these is exact."""
    colours, index = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True)
    if len(colours) <= 256:
        image = Image.fromarray(index.reshape(pixels.shape[:2]).astype(np.uint8))
        image.putpalette(colours.astype(np.uint8).tobytes())
    else:
        image = Image.fromarray(pixels)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()
