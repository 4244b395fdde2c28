"""The credit over one episode as a small picture, drawn in milliseconds.

For TensorBoard and for animations, where a plotting library would take longer than the episode.
"""

import dataclasses
import math

import numpy as np
from PIL import Image, ImageColor, ImageDraw, ImageFont

from synthetic_returns.viewer.event_style import EventStyle
from synthetic_returns.viewer.main_line import main_line
from synthetic_returns.viewer.recording import Recording

__all__ = ["draw_trace_picture"]

Number = float | int
SMOOTH = 2  # drawn this much larger and scaled down, for smooth edges


@dataclasses.dataclass(frozen=True)
class _Colours:
    """The colours of the viewer's light theme."""

    ground: str = "#ffffff"
    ink: str = "#1c1b19"
    quiet: str = "#5d5a54"
    rule: str = "#dedad2"
    phase: str = "#f3f0ea"
    cursor: str = "#d6d2ca"
    gain: str = "#d9620a"
    loss: str = "#1f6fb4"


_DARK = _Colours(
    "#1d2026", "#edebe6", "#a9a7a1", "#353a44", "#262a32", "#4a505c", "#ff9d4a", "#6db3f2"
)


def draw_trace_picture(
    recording: Recording,
    *,
    width: int = 640,
    height: int = 200,
    cursor: int | None = None,
    dark: bool = False,
    limits: tuple[float, float] | None = None,
) -> np.ndarray:
    """Bars of the credit over the steps, with the events above them: ``[height, width, 3]`` uint8.

    Args:
      recording: the episode.
      width: of the picture.
      height: of the picture.
      cursor: a step to point at.
      dark: for a dark ground.
      limits: the smallest and the largest credit shown; by default those of the episode.
    """
    pen = _Pen(recording, width * SMOOTH, height * SMOOTH, dark, limits)
    pen.phases()
    if cursor is not None:
        pen.cursor(cursor)
    pen.bars()
    pen.events()
    picture = pen.image.resize((width, height), Image.Resampling.LANCZOS)
    return np.asarray(picture)


class _Pen:
    """Draws on one picture; every length is in its enlarged pixels."""

    def __init__(
        self,
        recording: Recording,
        width: int,
        height: int,
        dark: bool,
        limits: tuple[float, float] | None,
    ):
        self._line, self._count = main_line(recording), len(recording)
        self._dark = dark
        self._colours = _DARK if dark else _Colours()
        self.image = Image.new("RGB", (width, height), self._colours.ground)
        self._draw = ImageDraw.Draw(self.image)
        self._font = ImageFont.load_default(11 * SMOOTH)
        self._left, self._right = 44 * SMOOTH, width - 10 * SMOOTH
        self._top, self._bottom = 44 * SMOOTH, height - 20 * SMOOTH
        self._low, self._high = limits or self._line.limits

    def _x(self, step: Number) -> float:
        return self._left + step * (self._right - self._left) / self._count

    def _y(self, value: Number) -> float:
        share = (value - self._low) / (self._high - self._low)
        return self._bottom - share * (self._bottom - self._top)

    def _write(self, place: tuple[Number, Number], text: str, anchor: str, colour: str) -> None:
        self._draw.text(place, text, colour, self._font, anchor)

    def phases(self) -> None:
        for index, (name, start, end) in enumerate(self._line.spans):
            if index % 2:
                box = (self._x(start), self._top, self._x(end), self._bottom)
                self._draw.rectangle(box, self._colours.phase)
            if self._draw.textlength(name, self._font) < self._x(end) - self._x(start):
                middle = (self._x(start) + self._x(end)) / 2
                self._write((middle, self._bottom + 4 * SMOOTH), name, "ma", self._colours.quiet)
        if not self._line.spans:
            below = (self._right, self._bottom + 4 * SMOOTH)
            self._write(below, "step of the episode", "ra", self._colours.quiet)

    def cursor(self, step: int) -> None:
        box = (self._x(step), self._top - 20 * SMOOTH, self._x(step + 1), self._bottom)
        self._draw.rectangle(box, self._colours.cursor)

    def bars(self) -> None:
        for value in {self._high, self._low, 0.0}:
            y = self._y(value)
            line = (self._left, y, self._right, y)
            self._draw.line(line, self._colours.quiet if value == 0 else self._colours.rule, SMOOTH)
            if value == 0 or abs(y - self._y(0)) > 12 * SMOOTH:
                self._write((self._left - 5 * SMOOTH, y), f"{value:.3g}", "rm", self._colours.quiet)
        for step, value in enumerate(self._line.values):
            top, bottom = sorted((self._y(value), self._y(0)))
            if bottom - top >= 1:
                box = (self._x(step), top, max(self._x(step) + 1, self._x(step + 1) - 1), bottom)
                self._draw.rectangle(box, self._colours.gain if value > 0 else self._colours.loss)
        self._write((self._left, 4 * SMOOTH), self._line.label, "la", self._colours.ink)

    def events(self) -> None:
        place = self._right
        for name, style in reversed(self._line.styles.items()):
            label = name.replace("_", " ")
            self._write((place, 4 * SMOOTH), label, "ra", self._colours.ink)
            place -= self._draw.textlength(label, self._font) + 9 * SMOOTH
            self._mark(style, place, 11 * SMOOTH)
            place -= 16 * SMOOTH
            for step in self._line.marks[name]:
                self._mark(style, self._x(step + 0.5), self._top - 12 * SMOOTH)

    def _mark(self, style: EventStyle, x: Number, y: Number) -> None:
        r, colour = 4 * SMOOTH, ImageColor.getrgb(style.dark if self._dark else style.light)
        if style.shape == "circle":
            self._draw.ellipse((x - r, y - r, x + r, y + r), colour)
        elif style.shape == "cross":
            for sign in (-1, 1):
                self._draw.line((x - r, y - sign * r, x + r, y + sign * r), colour, 2 * SMOOTH)
        else:
            self._draw.polygon([(x + r * dx, y + r * dy) for dx, dy in _corners(style.shape)],
                               colour)  # fmt: skip


def _corners(shape: str) -> list[tuple[Number, Number]]:
    if shape == "square":
        return [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    if shape == "triangle":
        return [(0, -1), (1, 1), (-1, 1)]
    if shape == "star":
        angles = [math.pi * corner / 4 for corner in range(8)]
        radii = [1.4 if corner % 2 == 0 else 0.55 for corner in range(8)]
        return [(r * math.sin(a), -r * math.cos(a)) for r, a in zip(radii, angles, strict=True)]
    return [(0, -1.2), (1, 0), (0, 1.2), (-1, 0)]  # diamond
