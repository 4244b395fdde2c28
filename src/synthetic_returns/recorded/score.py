"""How far credit can be trusted: what it foresaw of the returns of episodes, and what came."""

import dataclasses
from collections.abc import Sequence

import numpy as np

__all__ = ["Score"]

BINS = 5


@dataclasses.dataclass(frozen=True)
class Score:
    """How well returns were foreseen one step before the end of each episode.

    What is foreseen is what has been paid by then: the true rewards so far, and the credit.

    Attributes:
      foreseen: for each episode, what had been paid.
      earned: for each, the true rewards that came before the last step.
      returns: for each, its return.
    """

    foreseen: np.ndarray
    earned: np.ndarray
    returns: np.ndarray

    @property
    def explained_variance(self) -> float:
        """The share of the variance of returns that was foreseen; 1 is all, 0 or less nothing."""
        return _explained(self.returns, self.foreseen)

    @property
    def rewards_alone(self) -> float:
        """The same without credit: what the true rewards so far say."""
        return _explained(self.returns, self.earned)

    @property
    def slope(self) -> float:
        """How much the return rises for each unit that was foreseen; 1 is well calibrated."""
        spread = float(np.var(self.foreseen))
        if spread <= 1e-12 * max(1.0, float(np.mean(self.foreseen) ** 2)):
            return float("nan")
        centred = self.foreseen - self.foreseen.mean()
        return float(np.mean(centred * (self.returns - self.returns.mean())) / spread)

    @property
    def error(self) -> float:
        """The root of the mean squared difference between what was foreseen and what came."""
        return float(np.sqrt(np.mean(np.square(self.returns - self.foreseen))))

    def calibration(self, bins: int = BINS) -> Sequence[tuple[float, float, int]]:
        """Episodes in groups by what was foreseen: its mean, the mean return, and how many."""
        order = np.argsort(self.foreseen, kind="stable")
        return [
            (float(self.foreseen[rows].mean()), float(self.returns[rows].mean()), len(rows))
            for rows in np.array_split(order, min(bins, len(order)))
        ]

    def __len__(self) -> int:
        return len(self.returns)

    def __float__(self) -> float:
        return self.explained_variance

    def __str__(self) -> str:
        return (
            f"{len(self)} episodes: {self.explained_variance:.0%} of the variance of returns was "
            f"foreseen ({self.rewards_alone:.0%} from rewards alone), slope {self.slope:.2f}"
        )


def _explained(returns: np.ndarray, foreseen: np.ndarray) -> float:
    variance = float(np.var(returns))
    return float(1 - np.var(returns - foreseen) / variance) if variance > 0 else float("nan")
