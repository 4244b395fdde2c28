"""What every wrapper offers beside its environment."""

from pathlib import Path

import numpy as np

from synthetic_returns.credit.data.episode import Episode
from synthetic_returns.credit.explanation import Explanation
from synthetic_returns.wrappers.stream import StreamCredit

__all__ = ["SYNTHETIC_RETURN", "TRUE_REWARD", "Credited", "CreditedData"]

# The names in the info.
TRUE_REWARD = "true_reward"
SYNTHETIC_RETURN = "synthetic_return"


class Credited:
    """An environment whose rewards are augmented by ``credit``."""

    credit: StreamCredit

    def save(self, path: str | Path) -> None:
        """Writes all that was learned, and the episodes to learn from, to one file."""
        self.credit.save(path)

    def load(self, path: str | Path) -> None:
        """Goes on from what ``save`` wrote."""
        self.credit.load(path)

    def freeze(self) -> None:
        """Switches learning and recording off, for evaluation; rewards are augmented as before."""
        self.credit.freeze()

    def unfreeze(self) -> None:
        """Goes on learning, from the episodes that start from now on."""
        self.credit.unfreeze()

    def explain(self, episode: Episode) -> Explanation:
        """What the method says about each state of an episode, in named terms."""
        return self.credit.explain(episode)

    def recent_episodes(self) -> list[Episode]:
        """The episodes that ended last, at most 100, oldest first; with true rewards."""
        return self.credit.recent_episodes()

    def report(self) -> dict[str, float]:
        """Figures to log: ``explained_variance``, ``trust``, the mean ``true_return`` and others.

        ``true_return`` is over the 100 episodes that ended last.
        """
        return self.credit.report()


class CreditedData(Credited):
    """Data of finished and running steps whose rewards are augmented when they are learned from."""

    def report(self) -> dict[str, float]:
        """Figures to log; ``true_return`` is over the 100 episodes that ended last."""
        returns = [float(episode.reward.sum()) for episode in self.recent_episodes()]
        mean = float(np.mean(returns)) if returns else float("nan")
        return self.credit.report() | {"true_return": mean}
