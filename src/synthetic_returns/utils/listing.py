"""Lists for the terminal: aligned columns that fit its width, or plain fields when piped."""

import dataclasses
import shutil
import sys
import textwrap
from collections.abc import Sequence

__all__ = ["Listing", "is_terminal", "print_listing"]

NARROWEST = 60  # columns of a terminal that lines are fitted into
GAP = "  "
INDENT = "    "


@dataclasses.dataclass(frozen=True)
class Listing:
    """A table whose cells are never cut.

    Attributes:
      header: names of the columns.
      rows: the cells of each.
      right: names of the columns that are aligned to the right.
      below: name of a column of sentences; on a terminal, each stands below its row.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[str] = frozenset()
    below: str | None = None

    def plain(self) -> str:
        """Fields with tabs between them, a row on each line: for other programs."""
        lines = ("\t".join(" ".join(cell.split()) for cell in row) for row in self.rows)
        return "\n".join(["\t".join(self.header), *lines])

    def fitted(self, width: int) -> str:
        """Columns for people; lines are at most so wide where words allow it."""
        shown = [i for i, name in enumerate(self.header) if name != self.below]
        widths = {i: max(len(row[i]) for row in [self.header, *self.rows]) for i in shown}
        others = sum(widths[i] + len(GAP) for i in shown[1:])
        widths[shown[0]] = max(len(self.header[shown[0]]), min(widths[shown[0]], width - others))
        lines = []
        for row in [self.header, *self.rows]:
            lines += self._lines([row[i] for i in shown], [widths[i] for i in shown])
            if self.below and row is not self.header:
                text = row[self.header.index(self.below)]
                lines += textwrap.wrap(
                    text, width, initial_indent=INDENT, subsequent_indent=INDENT,
                    break_long_words=False, break_on_hyphens=False,
                )  # fmt: skip
        return "\n".join(lines)

    def _lines(self, cells: Sequence[str], widths: Sequence[int]) -> list[str]:
        """One line; two if the first cell is too long for its column."""
        first, *others = cells
        above = [first] if len(first) > widths[0] else []
        names = [name for name in self.header if name != self.below]
        placed = [
            cell.rjust(size) if name in self.right else cell.ljust(size)
            for cell, size, name in zip(
                ["" if above else first, *others], widths, names, strict=True
            )
        ]
        return [*above, GAP.join(placed).rstrip()]


def is_terminal() -> bool:
    """Whether a person reads standard output."""
    return sys.stdout.isatty()


def print_listing(listing: Listing) -> None:
    """Prints a list as suits what standard output is."""
    if is_terminal():
        width = shutil.get_terminal_size().columns
        print(listing.fitted(max(NARROWEST, width)))
    else:
        print(listing.plain())
