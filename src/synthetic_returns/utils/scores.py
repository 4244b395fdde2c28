"""Comparing methods over tasks and seeds, by the definitions of rliable (Agarwal et al. 2021).

The scores of a method are one array for each task, with one score for each run along the last axis;
axes before it, such as that of resampling, are kept. Tasks may have different numbers of runs.
"""

from collections.abc import Callable, Sequence

import numpy as np

__all__ = [
    "Scores",
    "interquartile_mean",
    "performance_profile",
    "probability_of_improvement",
    "stratified_interval",
]

Scores = Sequence[np.ndarray]
CUT = 0.25  # of the runs, at each end
SAMPLES = 2000


def interquartile_mean(scores: Scores) -> np.ndarray:
    """The mean of the middle half of all runs of all tasks.

    A quarter of the runs, rounded down, is left out at each end. It is as robust as the median and
    needs fewer runs.
    """
    ordered = np.sort(np.concatenate(list(scores), axis=-1), axis=-1)
    runs = ordered.shape[-1]
    cut = int(CUT * runs)
    return np.asarray(ordered[..., cut : runs - cut].mean(axis=-1))


def probability_of_improvement(scores: Scores, others: Scores) -> np.ndarray:
    """How likely a run scores more than a run of another method on the same task.

    Mean over the tasks of P(X > Y) + P(X = Y) / 2, which is Mann and Whitney's U over all pairs.
    """
    pairs = ((x[..., :, None], y[..., None, :]) for x, y in zip(scores, others, strict=True))
    of_tasks = [((x > y) + (x == y) / 2).mean(axis=(-2, -1)) for x, y in pairs]
    return np.asarray(np.mean(of_tasks, axis=0))


def performance_profile(scores: Scores, thresholds: np.ndarray) -> np.ndarray:
    """The share of all runs of all tasks that score more than each threshold."""
    runs = np.concatenate(list(scores), axis=-1)
    return (runs[..., None] > thresholds).mean(axis=-2)


def stratified_interval(
    statistic: Callable[..., np.ndarray], *methods: Scores, samples: int = SAMPLES
) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % bootstrap interval of a statistic of one or more methods.

    Runs are drawn with replacement within each task, and apart for each method. The seed is fixed.

    Args:
      statistic: of as many scores as there are methods.
      *methods: the scores of each.
      samples: how often to resample.
    """
    rng = np.random.default_rng(0)
    drawn = [
        [runs[rng.integers(len(runs), size=(samples, len(runs)))] for runs in scores]
        for scores in methods
    ]
    low, high = np.quantile(statistic(*drawn), [0.025, 0.975], axis=0)
    return np.asarray(low), np.asarray(high)
