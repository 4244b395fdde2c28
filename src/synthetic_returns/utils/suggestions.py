"""Error messages about unknown names, with suggestions."""

import difflib
from collections.abc import Iterable

__all__ = ["unknown"]


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """A message that names the value, what there is, and the nearest."""
    known = list(known)
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    return f"there is no {kind} {name!r}; {hint}The choices are: {', '.join(known)}."
