"""The settings of novelty."""

import dataclasses

from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.utils.checks import check_finite_number, check_positive

__all__ = ["NoveltySettings"]


@dataclasses.dataclass(frozen=True)
class NoveltySettings:
    """An intrinsic reward for states that are new within their episode (NGU)."""

    weight: float = 0.0
    """What arriving in a wholly new state is worth, in units of the environment's reward; 0 for no
    novelty."""
    neighbours: int = 10
    """States of the episode so far, the nearest ones, that a state is compared with."""
    capacity: int = 256
    """States of an episode that are remembered, the newest ones."""
    most: float = 5.0
    """How many times more a state earns, at most, that is new in all episodes."""
    encoder: TorsoSettings = dataclasses.field(default=TorsoSettings(sizes=(64, 32)))
    """From observations to what actions change in them, and to what is or is not known."""
    learning_rate: float = 5e-4
    """Step size of Adam."""

    def __post_init__(self) -> None:
        check_finite_number("weight", self.weight)
        check_positive("neighbours", self.neighbours)
        if self.weight < 0:
            raise ValueError(
                f"weight is {self.weight}; use 0 for no novelty, or a positive number."
            )
        if self.capacity < self.neighbours:
            raise ValueError(
                f"capacity is {self.capacity} and neighbours is {self.neighbours}: as many states "
                "as are compared with have to fit."
            )
        if not self.most >= 1:
            raise ValueError(f"most is {self.most}; it must be 1 or more.")
