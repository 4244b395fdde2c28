"""Few different sizes, so that little is compiled."""

__all__ = ["bucket"]


def bucket(length: int, longest: int | None = None) -> int:
    """Rounds a length up to a power of two.

    Compiling for one size more takes longer than hundreds of updates on what it would save.

    Args:
      length: to be rounded up.
      longest: what no size exceeds, if there is such a bound.
    """
    size = 2 ** max(0, length - 1).bit_length()
    return size if longest is None else min(longest, size)
