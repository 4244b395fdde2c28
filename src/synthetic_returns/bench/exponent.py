"""The exponent of a power law, from measured sizes and costs."""

from collections.abc import Sequence

import numpy as np

__all__ = ["exponent", "exponent_of_large"]


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of a straight line through the logarithms of sizes and costs, by least squares.

    1 means that twice the size costs twice as much.

    Args:
      sizes: at least two different ones, all above 0.
      costs: what each size costs, above 0.
    """
    if len(set(sizes)) < 2:
        raise ValueError(f"the sizes are {list(sizes)}; a slope needs two different ones.")
    if min(*sizes, *costs) <= 0:
        raise ValueError(
            f"the sizes are {list(sizes)} and the costs {list(costs)}; all must be above 0 to have "
            "a logarithm."
        )
    x, y = np.log(sizes), np.log(costs)
    x = x - x.mean()
    return float(x @ y / (x @ x))


def exponent_of_large(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The exponent of the larger half of the sizes, at least two.

    What costs the same at any size, such as the call of a program, makes a series look flatter than
    it ends. Among the larger sizes it weighs less.
    """
    pairs = sorted(zip(sizes, costs, strict=True))
    upper = pairs[-max(2, (len(pairs) + 1) // 2) :]
    return exponent([size for size, _ in upper], [cost for _, cost in upper])
