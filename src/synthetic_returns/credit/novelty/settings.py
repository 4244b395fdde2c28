"""The settings of novelty."""

import dataclasses

from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.utils.checks import (
    check_finite_number,
    check_positive,
    check_positive_number,
)
from synthetic_returns.utils.meanings import NoMeaning, switched_off

__all__ = ["NoveltySettings"]


@dataclasses.dataclass(frozen=True)
class NoveltySettings:
    """An intrinsic reward for states that are new within their episode (NGU)."""

    weight: float = 0.0
    """Reward of an entirely new state, in units of the environment's reward; 0 for no
    novelty."""
    neighbours: int = 10
    """Number of nearest earlier states of the episode that a state is compared with."""
    capacity: int = 256
    """Number of newest states of the episode to remember."""
    most: float = 5.0
    """Largest factor by which the reward grows for states that are new over all episodes."""
    encoder: TorsoSettings = dataclasses.field(default=TorsoSettings(sizes=(64, 32)))
    """Networks for both kinds of novelty: within the episode and over all episodes."""
    learning_rate: float = 5e-4
    """Learning rate of Adam."""

    def __post_init__(self) -> None:
        check_finite_number("weight", self.weight)
        check_positive("neighbours", self.neighbours)
        check_positive_number("learning_rate", self.learning_rate)
        if self.weight < 0:
            raise ValueError(
                f"weight is {self.weight}; use 0 for no novelty, or a positive number."
            )
        if self.capacity < self.neighbours:
            raise ValueError(
                f"capacity is {self.capacity} and neighbours is {self.neighbours}; capacity must "
                "be at least neighbours."
            )
        if not self.most >= 1:
            raise ValueError(f"most is {self.most}; it must be 1 or more.")

    def meaningless(self) -> dict[str, NoMeaning]:
        """All other settings, if the weight is 0."""
        return {} if self.weight else switched_off(self, "weight", "novelty", "0.1")
