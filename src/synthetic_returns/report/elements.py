"""Tables and legends of pages, as markup."""

from collections.abc import Iterable, Sequence

from synthetic_returns.report.chart import arm_class
from synthetic_returns.viewer.markup import Markup, tag

__all__ = ["make_legend", "make_table"]


def make_table(header: Sequence[str], rows: Sequence[Sequence[str]], name: str) -> Markup:
    """A table whose first column names its rows.

    Args:
      header: of the columns.
      rows: the cells of each.
      name: for those who do not see it.
    """
    head = tag("thead", tag("tr", [tag("th", cell, scope="col") for cell in header]))
    body = tag("tbody", [tag("tr", _cells(row)) for row in rows])
    # Wide tables scroll on their own, and can be reached by keyboard to do so.
    return tag("div", tag("table", head, body), class_="scroll", tabindex="0", role="region",
               aria_label=name)  # fmt: skip


def make_legend(arms: Iterable[tuple[str, int]]) -> Markup:
    """The labels of arms beside their lines; the number of an arm is its colour."""
    entries = [
        tag(
            "li",
            tag("svg", tag("path", d="M0 6H34", class_="mean"), viewBox="0 0 34 12",
                class_=arm_class(number), aria_hidden="true"),
            label,
        )
        for label, number in arms
    ]  # fmt: skip
    return tag("ul", entries, class_="legend")


def _cells(row: Sequence[str]) -> list[Markup]:
    first, *rest = row
    return [tag("th", first, scope="row"), *(tag("td", cell) for cell in rest)]
