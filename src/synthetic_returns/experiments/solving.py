"""When a task counts as solved; the one definition that all tables and figures use."""

import dataclasses

import numpy as np

__all__ = ["KEPT", "SOLVED", "Solving", "find_solving", "smooth"]

SOLVED = 0.98  # of success, for tasks about which nothing else was decided
WINDOW = 5  # rows of metrics, each the mean over the episodes of one hundredth of the budget
KEPT = 0.95  # of the threshold; a curve that falls below it had not solved the task


@dataclasses.dataclass(frozen=True)
class Solving:
    """The row of metrics at which a task was solved, and how well that lasted.

    Attributes:
      row: index of the row.
      lowest: the smallest smoothed success since the threshold was first reached; smaller than
        95 % of it if the task was solved, lost and solved again.
    """

    row: int
    lowest: float


def smooth(values: np.ndarray) -> np.ndarray:
    """The mean over the newest rows at each row, never over later ones.

    A row in which no episode ended is NaN: it counts for nothing and takes the mean before it.
    """
    known = ~np.isnan(values)
    smoothed = np.full(len(values), np.nan)
    for row in range(len(values)):
        newest = np.flatnonzero(known[: row + 1])[-WINDOW:]
        if len(newest):
            smoothed[row] = values[newest].mean()
    return smoothed


def find_solving(success: np.ndarray, threshold: float) -> Solving | None:
    """Finds the first row from which on the task stays solved.

    At this row the smoothed training success reaches the threshold, and until the end of training
    it never falls below 95 % of it. The margin is there because a row is a sample of episodes: an
    agent at 0.99 is measured below 0.98 now and then.

    Args:
      success: training success in every row of metrics, in [0, 1].
      threshold: what to reach.
    """
    smoothed = smooth(success)
    # NaN, before the first episode ended, is not solved.
    fallen = np.flatnonzero(~(smoothed >= KEPT * threshold))
    lasting_from = fallen[-1] + 1 if len(fallen) else 0
    reached = np.flatnonzero(smoothed[lasting_from:] >= threshold)
    if not len(reached):
        return None
    first_reached = np.flatnonzero(smoothed >= threshold)[0]
    return Solving(int(lasting_from + reached[0]), float(smoothed[first_reached:].min()))
