"""Which kinds of states earn: states that were paid much or little, put into groups."""

import dataclasses
from collections.abc import Sequence

import numpy as np

__all__ = ["Kind", "earning_kinds"]

FEW_STATES = 1000  # if there are no more different ones, and most come often, each is a kind
SEEN_OFTEN = 3  # states that came less often say little
EXTREME = 0.03  # the share of steps at each end that are looked at where all states differ
GROUPS = 3  # at each end
SHOWN = 5  # at each end
ROUNDS = 20  # of k-means


@dataclasses.dataclass(frozen=True)
class Kind:
    """States that are alike.

    Attributes:
      credit: what arriving in one of them is paid beside its reward, on average.
      spread: the standard deviation of that.
      count: how many of the steps that were looked at arrived in one.
      state: one of them, or their mean.
    """

    credit: float
    spread: float
    count: int
    state: np.ndarray


def earning_kinds(states: np.ndarray, credit: np.ndarray) -> Sequence[Kind]:
    """The kinds that earn most and least, from the highest to the lowest.

    Args:
      states: that were arrived in, ``[n, ...]``.
      credit: of arriving in each.
    """
    flat = states.reshape(len(states), -1)
    different, group, counts = np.unique(flat, axis=0, return_inverse=True, return_counts=True)
    group = group.reshape(-1)  # numpy 2.0.0 gives it another axis
    often = np.flatnonzero(counts >= SEEN_OFTEN)
    if len(different) <= FEW_STATES and 2 * counts[often].sum() >= len(flat):
        kinds = [_kind(states[group == i], credit[group == i], mean=False) for i in often]
        kinds.sort(key=lambda kind: -kind.credit)
        return kinds if len(kinds) <= 2 * SHOWN else [*kinds[:SHOWN], *kinds[-SHOWN:]]
    order = np.argsort(credit)
    number = max(GROUPS, int(EXTREME * len(order)))
    found: list[Kind] = []
    for rows in (order[-number:], order[:number]):
        of_row = _groups(flat[rows].astype(np.float64))
        found += [
            _kind(states[rows[of_row == i]], credit[rows[of_row == i]], mean=True)
            for i in np.unique(of_row)
        ]
    return sorted(found, key=lambda kind: -kind.credit)


def _kind(states: np.ndarray, credit: np.ndarray, *, mean: bool) -> Kind:
    state = np.asarray(states.astype(np.float64).mean(axis=0) if mean else states[0])
    return Kind(float(credit.mean()), float(credit.std()), len(credit), state)


def _groups(points: np.ndarray) -> np.ndarray:
    """K-means from centres that lie far apart; which group each point is in."""
    spread = points.std(axis=0)
    points = (points - points.mean(axis=0)) / np.where(spread > 0, spread, 1)
    centres = points[:1]
    while len(centres) < min(GROUPS, len(points)):
        distance = _distances(points, centres).min(axis=1)
        centres = np.concatenate([centres, points[distance.argmax()][None]])
    nearest = np.zeros(len(points), int)
    for _ in range(ROUNDS):
        nearest = _distances(points, centres).argmin(axis=1)
        centres = np.stack(
            [
                points[nearest == i].mean(axis=0) if np.any(nearest == i) else centre
                for i, centre in enumerate(centres)
            ]
        )
    return nearest


def _distances(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return np.stack([np.square(points - centre).sum(axis=1) for centre in centres], axis=1)
