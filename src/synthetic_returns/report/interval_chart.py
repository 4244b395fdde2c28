"""Numbers of several methods with their intervals, as SVG: one row for each."""

from collections.abc import Sequence

from synthetic_returns.experiments.comparison.summary import Estimate
from synthetic_returns.report.chart import arm_class
from synthetic_returns.viewer.markup import Markup, tag

__all__ = ["draw_intervals"]

WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 420, 20, 110, 16, 8, 22
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


def draw_intervals(
    title: str,
    rows: Sequence[tuple[str, int, Estimate]],
    *,
    note: str = "",
    level: float | None = None,
) -> Markup | None:
    """Draws shares between 0 and 1; None if there are none.

    Args:
      title: what they are.
      rows: the label of each, the number of its arm, and the share.
      note: a line under the title.
      level: where to draw a dashed line, such as that of no difference.
    """
    if not rows:
        return None
    height = TOP + ROW * len(rows) + BOTTOM
    floor = height - BOTTOM
    parts = []
    for value in TICKS:
        x = _x(value)
        parts.append(tag("line", class_="rule", x1=x, x2=x, y1=TOP, y2=floor))
        parts.append(tag("text", f"{value:g}", x=x, y=height - 5, class_="middle"))
    if level is not None:
        parts.append(tag("path", d=f"M{_x(level)} {TOP}V{floor}", class_="level"))
    for place, (label, arm, estimate) in enumerate(rows):
        y = TOP + ROW * (place + 0.5)
        parts.append(tag("text", label, x=LEFT - 8, y=y, dy="0.35em", class_="end"))
        parts.append(
            tag(
                "g",
                tag("path", d=f"M{_x(estimate.low)} {y}H{_x(estimate.high)}", class_="interval"),
                tag("circle", cx=_x(estimate.value), cy=y, r=4),
                class_=arm_class(arm),
            )
        )
    told = "; ".join(
        f"{label} {estimate.value:.2f}, {estimate.low:.2f} to {estimate.high:.2f}"
        for label, _, estimate in rows
    )
    svg = tag("svg", parts, viewBox=f"0 0 {WIDTH} {height}", role="img",
              aria_label=f"{title}: {told}")  # fmt: skip
    caption = tag("figcaption", tag("b", title), tag("span", note) if note else None)
    return tag("figure", caption, svg, class_="chart")


def _x(share: float) -> str:
    return f"{LEFT + (WIDTH - LEFT - RIGHT) * share:.1f}"
