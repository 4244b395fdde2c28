"""Small drawings and tables with which results show themselves in a notebook."""

import html
from collections.abc import Mapping

import numpy as np

__all__ = ["bars_svg", "facts_table", "line_svg"]

WIDTH, HEIGHT = 560, 64
LEFT = 56  # for the numbers beside a drawing
GAIN, LOSS = "#d9620a", "#1f6fb4"  # as in the viewer


def bars_svg(values: np.ndarray, label: str) -> str:
    """A bar for each number, orange above zero and blue below it."""
    known = np.nan_to_num(np.asarray(values, np.float64))
    low, high = _range(known)
    size = (WIDTH - LEFT) / len(known)
    zero = _y(0.0, low, high)
    bars = "".join(
        f'<rect x="{LEFT + step * size:.1f}" y="{min(_y(value, low, high), zero):.1f}" '
        f'width="{max(size - 0.3, 0.5):.1f}" height="{abs(_y(value, low, high) - zero):.1f}" '
        f'fill="{GAIN if value > 0 else LOSS}"/>'
        for step, value in enumerate(known)
        if value
    )
    line = f'<path d="M{LEFT} {zero:.1f}H{WIDTH}" stroke="currentColor" stroke-width="0.5"/>'
    return _svg(line + bars, label, low, high)


def line_svg(x: np.ndarray, y: np.ndarray, label: str) -> str:
    """A curve, without the points that are not known."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = np.asarray(x, np.float64)[known], np.asarray(y, np.float64)[known]
    low, high = _range(y)
    places = LEFT + (WIDTH - LEFT) * x / max(float(x.max(initial=0)), 1e-12)
    points = " ".join(
        f"{place:.1f},{_y(value, low, high):.1f}" for place, value in zip(places, y, strict=True)
    )
    curve = f'<polyline points="{points}" fill="none" stroke="{GAIN}" stroke-width="1.5"/>'
    return _svg(curve, label, low, high)


def facts_table(rows: Mapping[str, str]) -> str:
    """Two columns. Names are escaped; values are markup, so escape what comes from outside."""
    cells = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:left">{value}</td></tr>'
        for name, value in rows.items()
    )
    return f"<table>{cells}</table>"


def _range(values: np.ndarray) -> tuple[float, float]:
    """From the smallest to the largest value and zero."""
    low, high = float(values.min(initial=0)), float(values.max(initial=0))
    return (low, high) if high > low else (0.0, 1.0)


def _y(value: float, low: float, high: float) -> float:
    return 4 + (HEIGHT - 8) * (high - value) / (high - low)


def _svg(content: str, label: str, low: float, high: float) -> str:
    numbers = "".join(
        f'<text x="{LEFT - 4}" y="{_y(value, low, high) + 4:.1f}" text-anchor="end" font-size="10" '
        f'fill="currentColor">{value:.3g}</text>'
        for value in (low, high)
    )
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{html.escape(label, quote=True)}">{numbers}{content}</svg>'
    )
