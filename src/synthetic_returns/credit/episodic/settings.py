"""The named choices of the episodic method."""

import dataclasses
from typing import Literal

from synthetic_returns.credit.method import CreditMethod
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.utils.checks import check_positive

__all__ = ["EpisodicSettings"]


@dataclasses.dataclass(frozen=True)
class EpisodicSettings(CreditMethod):
    """Each choice can be switched off on its own."""

    centred: bool = True
    """Sum c minus its mean, so that the regression is not dominated by the mean of c."""
    encoder_gradient: bool = True
    """Let the error of the memory term shape the encoder; the paper detaches stored states."""
    gate: Literal["sigmoid", "variance", "end"] = "variance"
    """sigmoid: learned with the rest (the paper). variance: open where the current state leaves
    the reward uncertain. end: open at the last step, for tasks that pay for what was done there."""
    sparsity: float = 0.3
    """Cost of the mean size of c: a state contributes nothing unless the rewards say so."""
    time_features: bool = True
    """Tell g and b how long the episode has lasted."""
    two_stage: bool = True
    """Fit b to the reward and c to what b leaves; the variance gate needs it."""
    standardise: bool = True
    """Measure rewards in running standard deviations from their running mean."""
    horizon: int = 1
    """Rewards that the target is the sum of, from that of this step on. 1 is the paper's target;
    more are for tasks in which a state matters by ending the episode before later costs."""
    trust: bool = True
    """Scale the credit by how far predictions held on episodes that were not yet trained on."""
    current: Literal["state", "time"] = "state"
    """What g and b see: the current state, and the time if they are told it; or the time alone,
    for tasks whose observations show what has been earned so far: a b that reads it there leaves
    nothing for c to explain."""
    end: bool = False
    """Tell g and b which step is the last one, for tasks that pay all at the end but do not show
    when that is. They are used in hindsight only, so they may know."""

    encoder: TorsoSettings = dataclasses.field(default=TorsoSettings(sizes=(128, 64)))
    """From observations to features."""
    head_sizes: tuple[int, ...] = (64,)
    """Hidden units of c, b and g."""
    learning_rate: float = 1e-3
    """Step size of Adam."""

    def __post_init__(self) -> None:
        check_positive("horizon", self.horizon)
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
