"""Few different sizes, so that little is compiled."""

__all__ = ["bucket"]


def bucket(length: int, longest: int | None = None, *, base: int = 2) -> int:
    """Rounds a length up to a power.

    Compiling for one size more takes longer than hundreds of updates on what it would save.

    Args:
      length: to be rounded up.
      longest: what no size exceeds, if there is such a bound.
      base: of the powers.
    """
    size = 1
    while size < length:
        size *= base
    return size if longest is None else min(longest, size)
