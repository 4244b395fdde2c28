"""Charts as SVG, mostly over the steps of training: every seed thin, the mean thick."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from synthetic_returns.utils.statistics import (
    Curve,
    align_curves,
    known_points,
    mean_interval,
)
from synthetic_returns.viewer.markup import Markup, tag

__all__ = ["Bundle", "arm_class", "draw_chart"]

WIDTH, HEIGHT = 420, 250
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 12, 34
POINTS = 120
Number = float | int | np.number
RESAMPLES = 1000
STYLES = 16  # of arms in the style sheet
STEPS = "environment steps"


def arm_class(number: int) -> str:
    """The class that gives an arm its colour and its dashes."""
    return f"arm arm-{number % STYLES}"


@dataclasses.dataclass(frozen=True)
class Bundle:
    """One quantity of the seeds of one arm.

    Attributes:
      label: of the arm.
      arm: its number, which is its colour.
      curves: steps and values of each seed; NaN is left out.
      detailed: whether the seeds and the interval are drawn, and not only the mean.
    """

    label: str
    arm: int
    curves: tuple[Curve, ...]
    detailed: bool = True

    def known(self) -> list[Curve]:
        """The curves where they have values; those that never have one are left out."""
        return known_points(self.curves)

    def mean_and_interval(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Steps, mean, and the 95 % bootstrap interval of the mean over the seeds.

        From where all seeds have a value to where the first one ends.
        """
        grid, values = align_curves(self.curves, POINTS)
        low, high = mean_interval(values, samples=RESAMPLES)
        return grid, values.mean(axis=0), low, high


def draw_chart(
    title: str,
    bundles: Sequence[Bundle],
    *,
    note: str = "",
    level: float | None = None,
    limits: tuple[float | None, float | None] = (None, None),
    across: str = STEPS,
) -> Markup | None:
    """Draws one quantity of all arms; None if no arm has it.

    Args:
      title: what the quantity is.
      bundles: one for each arm.
      note: a line under the title.
      level: where to draw a dashed line, such as that of the solved task.
      limits: smallest and largest value shown; None fits the curves.
      across: what the horizontal axis is.
    """
    bundles = [bundle for bundle in bundles if bundle.known()]
    if not bundles:
        return None
    axes = _Axes.around(bundles, level, limits, across)
    parts = axes.rules()
    if level is not None:
        parts.append(axes.line("level", np.array([0, axes.x_max]), np.array([level, level])))
    ends = []
    for bundle in bundles:
        grid, mean, low, high = bundle.mean_and_interval()
        seeds = bundle.known() if bundle.detailed else []
        lines = [axes.curve("seed", steps, values) for steps, values in seeds]
        if len(lines) > 1:
            lines.insert(0, axes.band(grid, low, high))
        lines.append(axes.curve("mean", grid, mean))
        parts.append(tag("g", lines, class_=arm_class(bundle.arm)))
        ends.append(f"{bundle.label} ends at {mean[-1]:.3g}")
    svg = tag(
        "svg", parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img",
        aria_label=f"{title} over {across}: {'; '.join(ends)}",
    )  # fmt: skip
    caption = tag("figcaption", tag("b", title), tag("span", note) if note else None)
    return tag("figure", caption, svg, class_="chart")


@dataclasses.dataclass(frozen=True)
class _Axes:
    """From steps and values to places in the picture."""

    x_max: float
    low: float
    high: float
    across: str

    @classmethod
    def around(
        cls,
        bundles: Sequence[Bundle],
        level: float | None,
        limits: tuple[float | None, float | None],
        across: str,
    ) -> "_Axes":
        curves = [curve for bundle in bundles for curve in bundle.known()]
        values = np.concatenate([y for _, y in curves] + ([[level]] if level is not None else []))
        low = float(values.min()) if limits[0] is None else limits[0]
        high = float(values.max()) if limits[1] is None else limits[1]
        if high - low < 1e-9:
            low, high = low - 0.5, high + 0.5
        return cls(float(max(x[-1] for x, _ in curves)), low, high, across)

    def x(self, step: Number) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / max(self.x_max, 1e-9)

    def y(self, value: Number) -> float:
        share = (value - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(1.0, max(0.0, share))

    def rules(self) -> list[Markup]:
        """Ruled lines with their numbers, and the axis of steps."""
        parts = []
        for value in _ticks(self.low, self.high):
            y = f"{self.y(value):.1f}"
            parts.append(tag("line", class_="rule", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y))
            parts.append(tag("text", f"{value:g}", x=LEFT - 6, y=y, dy="0.35em", class_="end"))
        size, label = self._unit()
        for step in _ticks(0, self.x_max):
            x, name = f"{self.x(step):.1f}", f"{step / size:g}"
            parts.append(tag("text", name, x=x, y=HEIGHT - BOTTOM + 15, class_="middle"))
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(tag("text", label, x=middle, y=HEIGHT - 3, class_="middle"))
        return parts

    def _unit(self) -> tuple[float, str]:
        """What the numbers of the horizontal axis count, and its label."""
        if self.across != STEPS:
            return 1.0, self.across
        size, name = (1e6, "million") if self.x_max >= 1e5 else (1e3, "thousand")
        return size, f"{self.across} ({name})"

    def line(self, name: str, xs: np.ndarray, ys: np.ndarray) -> Markup:
        return tag("path", d=self._path(xs, ys), class_=name)

    def curve(self, name: str, steps: np.ndarray, values: np.ndarray) -> Markup:
        """Thinned out to what the picture can show."""
        kept = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), 2 * POINTS)).astype(int))
        return self.line(name, steps[kept], values[kept])

    def band(self, grid: np.ndarray, low: np.ndarray, high: np.ndarray) -> Markup:
        outline = self._path(np.concatenate([grid, grid[::-1]]), np.concatenate([low, high[::-1]]))
        return tag("path", d=f"{outline}Z", class_="band")

    def _path(self, xs: np.ndarray, ys: np.ndarray) -> str:
        points = (f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in zip(xs, ys, strict=True))
        return "M" + "L".join(points)


def _ticks(low: Number, high: Number) -> list[float]:
    """About four round numbers in a range."""
    raw = (high - low) / 4
    size = 10 ** math.floor(math.log10(raw)) if raw > 0 else 1
    step = next(size * m for m in (1, 2, 2.5, 5, 10) if size * m >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]
