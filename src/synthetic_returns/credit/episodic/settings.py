"""The named choices of the episodic method."""

import dataclasses
from typing import Literal

from synthetic_returns.credit.method import CreditMethod
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.utils.checks import (
    check_not_negative,
    check_positive,
    check_positive_number,
    check_sizes,
)

__all__ = ["EpisodicSettings"]


@dataclasses.dataclass(frozen=True)
class EpisodicSettings(CreditMethod):
    """Each choice can be switched off on its own."""

    centred: bool = True
    """Sum c minus its mean, so that the mean of c does not dominate the regression."""
    encoder_gradient: bool = True
    """Let the error of the memory term train the encoder; the paper detaches stored states."""
    gate: Literal["sigmoid", "variance", "end"] = "variance"
    """sigmoid: learned with the rest (the paper). variance: open where the current state leaves
    the reward uncertain. end: open at the last step only, for tasks that pay everything there."""
    sparsity: float = 0.3
    """Cost of the mean size of c, so that states contribute nothing unless the rewards show
    it."""
    time_features: bool = True
    """Give g and b the time since the start of the episode."""
    two_stage: bool = True
    """Fit b to the reward and c to the residual of b; the variance gate needs it."""
    standardise: bool = True
    """Standardise rewards with their running mean and standard deviation."""
    horizon: int = 1
    """Number of rewards in the target, starting with that of this step. 1 is the paper's
    target; use more for tasks in which a state matters because it ends the episode before
    later costs."""
    trust: bool = True
    """Scale the credit by how well it predicted new episodes before training on them."""
    current: Literal["state", "time"] = "state"
    """What g and b see: the current state (and the time, with time_features), or the time
    alone. Use the time for tasks whose observations show the score so far: b would explain
    everything from it and leave nothing for c."""
    end: bool = False
    """Mark the last step for g and b, for tasks that pay everything at the end but do not show
    when that is. g and b are used in hindsight only, so they may know."""

    encoder: TorsoSettings = dataclasses.field(default=TorsoSettings(sizes=(128, 64)))
    """From observations to features."""
    head_sizes: tuple[int, ...] = (64,)
    """Hidden units of c, b and g."""
    learning_rate: float = 1e-3
    """Learning rate of Adam."""

    def __post_init__(self) -> None:
        check_positive("horizon", self.horizon)
        check_not_negative("sparsity", self.sparsity)
        check_sizes("head_sizes", self.head_sizes)
        check_positive_number("learning_rate", self.learning_rate)
        if self.current == "time" and not self.time_features:
            raise ValueError(
                "current is 'time' and time_features is False; g and b would see nothing: set "
                "current to 'state', or time_features to True."
            )
        if self.gate == "variance" and not self.two_stage:
            raise ValueError(
                "gate is 'variance' and two_stage is False; the variance gate measures what b "
                "leaves and so needs two stages: use gate 'sigmoid' for a single stage."
            )
