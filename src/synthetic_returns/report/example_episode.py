"""An episode of a run in a report: its credit over time, and what happened."""

import base64
import io

from PIL import Image

from synthetic_returns.report.run_record import RunRecord
from synthetic_returns.training.traces import read_traces
from synthetic_returns.viewer.main_line import main_line
from synthetic_returns.viewer.markup import Markup, tag
from synthetic_returns.viewer.recording import Recording
from synthetic_returns.viewer.trace_picture import draw_trace_picture

__all__ = ["episode_figure", "example_episode"]

SIZE = (1180, 240)
NARROW = (460, 230)  # for a phone, where the large one would be too small to read
EVENTS_TOLD = 12  # of each kind, in the text for those who do not see the picture


def example_episode(record: RunRecord) -> Markup | None:
    """The last trace that the run recorded, as a picture; None if it recorded none."""
    traces = read_traces(record.opened.path)
    if not traces:
        return None
    trace = traces[-1]
    recording = Recording.from_trace(trace, record.config.task)
    caption = (
        f"One episode after {trace.step:,} steps of training, seed {record.config.seed}, return "
        f"{recording.total:.3g}."
    )
    return episode_figure(recording, caption)


def episode_figure(recording: Recording, caption: str) -> Markup:
    """An episode as a picture of its credit, for light and dark, wide and narrow screens."""
    return tag(
        "figure",
        tag(
            "picture",
            tag("source", srcset=_picture(recording, NARROW, dark=True),
                media="screen and (max-width: 40rem) and (prefers-color-scheme: dark)"),
            tag("source", srcset=_picture(recording, NARROW, dark=False),
                media="screen and (max-width: 40rem)"),
            tag("source", srcset=_picture(recording, SIZE, dark=True),
                media="screen and (prefers-color-scheme: dark)"),
            tag("img", src=_picture(recording, SIZE, dark=False), alt=_told(recording)),
        ),
        tag("figcaption", caption),
        class_="episode",
    )  # fmt: skip


def _told(recording: Recording) -> str:
    line = main_line(recording)
    events = "; ".join(
        f"{name} at {', '.join(map(str, steps[:EVENTS_TOLD]))}"
        for name, steps in line.marks.items()
    )
    return (
        f"{line.label} over one episode of {len(recording)} states; the largest is at step "
        f"{line.peak}. Events: {events or 'none'}."
    )


def _picture(recording: Recording, size: tuple[int, int], *, dark: bool) -> str:
    pixels = draw_trace_picture(recording, width=size[0], height=size[1], dark=dark)
    file = io.BytesIO()
    Image.fromarray(pixels).quantize(64).save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
