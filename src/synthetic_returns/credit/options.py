"""The choices of the episodic learner."""

import dataclasses
from typing import Literal

__all__ = ["EpisodicOptions"]


@dataclasses.dataclass(frozen=True)
class EpisodicOptions:
    """The named choices of the episodic learner; each can be switched off on its own."""

    centred: bool = True
    """Sum c minus its mean, so that the regression is not dominated by the mean of c."""
    encoder_gradient: bool = True
    """Let the error of the memory term shape the encoder; the paper detaches stored states."""
    gate: Literal["sigmoid", "variance"] = "variance"
    """sigmoid: learned with the rest (the paper). variance: open where the current state leaves
    the reward uncertain."""
    sparsity: float = 0.3
    """Cost of the mean size of c: a state contributes nothing unless the rewards say so."""
    time_features: bool = True
    """Tell g and b how long the episode has lasted."""
    two_stage: bool = True
    """Fit b to the reward and c to what b leaves; the variance gate needs it."""
    standardise: bool = True
    """Measure rewards in running standard deviations from their running mean."""
    horizon: float = 0.0
    """Discount of the rewards that follow. 0 is the paper's target, the reward of this step alone;
    above, the target is the discounted return from here on, for tasks in which a state matters by
    ending the episode before later costs."""
    trust: bool = True
    """Scale alpha by how far predictions held on episodes that were not yet trained on."""

    channels: tuple[int, ...] = ()
    """Output channels of the encoder's convolutions; without any, it is an MLP."""
    kernel: int = 2
    """Side of their square kernels."""
    stride: int = 1
    """Their stride."""
    encoder_sizes: tuple[int, ...] = (128, 64)
    """Units of each dense layer of the encoder."""
    head_sizes: tuple[int, ...] = (64,)
    """Hidden units of c, b and g."""
    learning_rate: float = 1e-3
    """Step size of Adam."""
    slots: int = 1024
    """Episodes kept."""
    batch_size: int = 16
    """Episodes of one update."""
    updates_per_episode: float = 0.6
    """Updates for each finished episode."""

    def __post_init__(self) -> None:
        if self.gate == "variance" and not self.two_stage:
            raise ValueError(
                "gate is 'variance' and two_stage is False; the variance gate measures what b "
                "leaves and so needs two stages: use gate 'sigmoid' for a single stage."
            )
