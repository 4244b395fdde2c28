"""An episode with its trace as a GIF or an animated PNG, for a README or a talk."""

from pathlib import Path

import numpy as np
from PIL import Image

from synthetic_returns.envs.pictures import enlarge
from synthetic_returns.viewer.recording import Recording
from synthetic_returns.viewer.trace_picture import draw_trace_picture

__all__ = ["write_animation"]

WIDTH = 560
FRAME_WIDTH = 330
SECONDS = 0.12
REST_SECONDS = 2.0  # on the last frame, before it starts again
FORMATS = {".gif": "GIF", ".png": "PNG", ".apng": "PNG"}
SMALL = 64  # frames up to this wide are boards, drawn cell by cell


def write_animation(path: str | Path, recording: Recording) -> Path:
    """Writes the animation; the suffix says in which format."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"{path} ends in {path.suffix!r}; use one of {', '.join(FORMATS)}.")
    if recording.frames is None:
        raise ValueError("the episode has no frames; record it with pictures to animate it.")
    images = [Image.fromarray(_scene(recording, step)) for step in range(len(recording))]
    # One palette for all, so that the colours do not flicker.
    palette = images[len(images) // 2].quantize(255)
    images = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    durations = [round(1000 * SECONDS)] * (len(images) - 1) + [round(1000 * REST_SECONDS)]
    path.parent.mkdir(parents=True, exist_ok=True)
    images[0].save(
        path, FORMATS[path.suffix.lower()], save_all=True, append_images=images[1:],
        duration=durations, loop=0, optimize=True,
    )  # fmt: skip
    return path


def _scene(recording: Recording, step: int) -> np.ndarray:
    """One frame in the middle, its trace below."""
    assert recording.frames is not None
    frame = recording.frames[step]
    large = enlarge(frame, FRAME_WIDTH) if frame.shape[1] <= SMALL else frame
    trace = draw_trace_picture(recording, width=WIDTH, height=170, cursor=step)
    left = max(0, (WIDTH - large.shape[1]) // 2)
    scene = np.full((large.shape[0] + 24 + len(trace), WIDTH, 3), 255, np.uint8)
    scene[12 : 12 + large.shape[0], left : left + large.shape[1]] = large[:, :WIDTH]
    scene[-len(trace) :] = trace
    return scene
