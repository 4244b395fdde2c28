"""How far credit can be trusted: predicted returns compared with true ones."""

import dataclasses
from collections.abc import Sequence

import numpy as np

__all__ = ["Score"]

BINS = 5


@dataclasses.dataclass(frozen=True)
class Score:
    """How well the redistributed rewards predict the return one step before the end of an episode.

    The prediction is the sum of the redistributed rewards (true rewards and credit) before the last
    step.

    Attributes:
      foreseen: the prediction for each episode.
      earned: for each episode, the sum of the true rewards before the last step.
      returns: the return of each episode.
    """

    foreseen: np.ndarray
    earned: np.ndarray
    returns: np.ndarray

    @property
    def explained_variance(self) -> float:
        """Share of the variance of returns that is predicted; 1 is all, 0 or less is nothing."""
        return _explained(self.returns, self.foreseen)

    @property
    def rewards_alone(self) -> float:
        """The same without credit, with the true rewards so far as the prediction."""
        return _explained(self.returns, self.earned)

    @property
    def slope(self) -> float:
        """Slope of the return on the prediction; 1 is well calibrated."""
        spread = float(np.var(self.foreseen))
        if spread <= 1e-12 * max(1.0, float(np.mean(self.foreseen) ** 2)):
            return float("nan")
        centred = self.foreseen - self.foreseen.mean()
        return float(np.mean(centred * (self.returns - self.returns.mean())) / spread)

    @property
    def error(self) -> float:
        """Root mean squared error of the prediction."""
        return float(np.sqrt(np.mean(np.square(self.returns - self.foreseen))))

    def calibration(self, bins: int = BINS) -> Sequence[tuple[float, float, int]]:
        """Groups of episodes by prediction: mean prediction, mean return, number of episodes."""
        order = np.argsort(self.foreseen, kind="stable")
        return [
            (float(self.foreseen[rows].mean()), float(self.returns[rows].mean()), len(rows))
            for rows in np.array_split(order, min(bins, len(order)))
        ]

    def figures(self) -> dict[str, float | None]:
        """The figures by name, for a file; None where there is nothing to measure."""
        found = {
            "episodes": len(self),
            "explained_variance": self.explained_variance,
            "rewards_alone": self.rewards_alone,
            "slope": self.slope,
            "error": self.error,
        }
        return {name: round(x, 4) if np.isfinite(x) else None for name, x in found.items()}

    def __len__(self) -> int:
        return len(self.returns)

    def __float__(self) -> float:
        return self.explained_variance

    def __str__(self) -> str:
        return (
            f"{len(self)} episodes: {self.explained_variance:.0%} of the variance of returns is "
            f"predicted ({self.rewards_alone:.0%} by rewards alone), slope {self.slope:.2f}"
        )


def _explained(returns: np.ndarray, foreseen: np.ndarray) -> float:
    variance = float(np.var(returns))
    return float(1 - np.var(returns - foreseen) / variance) if variance > 0 else float("nan")
