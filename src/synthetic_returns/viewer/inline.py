"""An episode as a picture that stands in the text of a page or of a notebook."""

import base64
import io

from PIL import Image

from synthetic_returns.viewer.main_line import main_line
from synthetic_returns.viewer.markup import Markup, tag
from synthetic_returns.viewer.meaning import credit_in_words
from synthetic_returns.viewer.recording import Recording
from synthetic_returns.viewer.trace_picture import draw_trace_picture

__all__ = ["in_words", "inline_picture", "picture_source"]

SIZE = (760, 200)
EVENTS_TOLD = 12  # of each kind, in the text for those who do not see the picture


def inline_picture(recording: Recording, limits: tuple[float, float] | None = None) -> Markup:
    """The picture with a caption.

    Args:
      recording: the episode.
      limits: the smallest and the largest credit shown, where several episodes share a scale. An
        episode that stands alone also says what its credit means.
    """
    player = f", {recording.player}" if recording.player else ""
    caption = f"{len(recording) - 1:,} steps{player}: return {recording.total:.3g}. "
    return tag(
        "figure",
        tag("img", src=picture_source(recording, SIZE, limits=limits), alt=in_words(recording)),
        tag("figcaption", caption, credit_in_words([recording]) if limits is None else None),
    )


def in_words(recording: Recording) -> str:
    """What the picture shows, for those who do not see it."""
    line = main_line(recording)
    events = "; ".join(
        f"{name} at {', '.join(map(str, steps[:EVENTS_TOLD]))}"
        for name, steps in line.marks.items()
    )
    return (
        f"{line.label} over one episode of {len(recording)} states; the largest is at step "
        f"{line.peak}. Events: {events or 'none'}."
    )


def picture_source(
    recording: Recording,
    size: tuple[int, int],
    *,
    dark: bool = False,
    limits: tuple[float, float] | None = None,
) -> str:
    """The address of the picture, which is the picture itself.

    Args:
      recording: the episode.
      size: width and height.
      dark: for a dark ground.
      limits: the smallest and the largest credit shown; by default those of the episode.
    """
    width, height = size
    pixels = draw_trace_picture(recording, width=width, height=height, dark=dark, limits=limits)
    file = io.BytesIO()
    # An octree keeps every colour nearly as it is: the ground of all pictures, and small marks.
    palette = Image.fromarray(pixels).quantize(256, Image.Quantize.FASTOCTREE)
    palette.save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
