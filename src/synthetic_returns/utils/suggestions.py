"""Names that users give: error messages about unknown ones, with suggestions."""

import difflib
from collections.abc import Iterable, Sequence

__all__ = ["chosen_names", "unknown"]


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """A message that names the value, what there is, and the nearest."""
    known = list(known)
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    return f"there is no {kind} {name!r}; {hint}The choices are: {', '.join(known)}."


def chosen_names(kind: str, names: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    """The names that were given; all that are known, if none was.

    Raises:
      ValueError: one of them is not known.
    """
    for name in names:
        if name not in known:
            raise ValueError(unknown(kind, name, known))
    return names or known
