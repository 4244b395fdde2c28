"""Few different sizes, so that little is compiled."""

__all__ = ["bucket"]


def bucket(length: int, longest: int | None = None) -> int:
    """Rounds a length up to one of few sizes: steps of a quarter of the next power of two.

    Args:
      length: to be rounded up.
      longest: what no size exceeds, if there is such a bound.
    """
    step = max(1, 2 ** max(0, (length - 1).bit_length() - 2))
    size = -(-length // step) * step
    return size if longest is None else min(longest, size)
