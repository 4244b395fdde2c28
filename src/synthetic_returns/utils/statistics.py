"""Statistics over seeds and episodes: intervals of a mean, and curves that can be averaged."""

from collections.abc import Sequence

import numpy as np

from synthetic_returns.utils.scores import SAMPLES, stratified_interval

__all__ = ["Curve", "align_curves", "known_points", "mean_interval"]

Curve = tuple[np.ndarray, np.ndarray]  # steps, and the values there


def mean_interval(values: np.ndarray, *, samples: int = SAMPLES) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % bootstrap interval of the mean over the first axis; the seed is fixed."""
    return stratified_interval(lambda drawn: drawn[0].mean(axis=1), [values], samples=samples)


def known_points(curves: Sequence[Curve]) -> list[Curve]:
    """The curves where they have values; those that never have one are left out."""
    masks = [np.isfinite(values) for _, values in curves]
    found = [(steps[m], values[m]) for (steps, values), m in zip(curves, masks, strict=True)]
    return [(steps, values) for steps, values in found if len(steps)]


def align_curves(curves: Sequence[Curve], points: int) -> Curve:
    """Evenly spaced steps, and the values ``[curves, points]`` of all curves there.

    From where all have a value to where the first one ends; nothing if there is no curve.
    """
    curves = known_points(curves)
    if not curves:
        return np.zeros(0), np.zeros((0, 0))
    first = max(steps[0] for steps, _ in curves)
    last = min(steps[-1] for steps, _ in curves)
    grid = np.linspace(first, max(first, last), points)
    return grid, np.stack([np.interp(grid, steps, values) for steps, values in curves])
