"""The choices of the episodic learner."""

import dataclasses
from typing import Literal

from synthetic_returns.checks import check_positive

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
    negative_cost: float = 1.0
    """How much dearer, in the cost of sparsity, a contribution below that of an ordinary state is;
    for tasks in which credit for what was done and blame for what was not explain the same."""
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
    """Scale alpha by how far predictions held on episodes that were not yet trained on."""
    trust_from: float = 0.0
    """Give no synthetic returns until they explain this share of what b leaves of the last reward
    of an episode, measured on new episodes; 0 gives them from the start."""
    current: Literal["state", "time"] = "state"
    """What g and b see: the current state, and the time if they are told it; or the time alone,
    for tasks whose observations show what has been earned so far: a b that reads it there leaves
    nothing for c to explain."""
    end: bool = False
    """Tell g and b which step is the last one, for tasks that pay all at the end but do not show
    when that is. They are used in hindsight only, so they may know."""
    truncated_reward: float | None = None
    """Learn as if the last reward of an episode that was cut off had been this; for tasks in which
    running out of time escapes a penalty."""
    every: int = 1
    """Keep every n-th state of an episode, with the sum of the rewards from it to the next one
    kept; c of a state then stands for n of them. For long episodes."""

    rows: tuple[int, int] | None = None
    """The first row of an image that the model sees and the first that it does not; all unless
    given. For tasks in which what matters is always at one height."""
    channels: tuple[int, ...] = ()
    """Output channels of the encoder's convolutions; without any, it is an MLP."""
    patches: tuple[int, ...] = ()
    """Instead of kernel and stride: the side of the patches that each of the first layers cuts its
    input into."""
    pool: bool = False
    """Keep the largest output of each channel of the last convolution only: what matters may be
    anywhere in the image."""
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
    warmup: int = 1
    """Episodes to gather before the first update."""
    save_episodes: bool = True
    """Keep the episodes in checkpoints, so that a resumed run goes on exactly. Without, a resumed
    run gathers new ones first; for observations that are too large to be saved every minute."""

    def __post_init__(self) -> None:
        check_positive("every", self.every)
        check_positive("horizon", self.horizon)
        check_positive("warmup", self.warmup)
        if self.rows is not None and not 0 <= self.rows[0] < self.rows[1]:
            raise ValueError(
                f"rows is {self.rows}; it has to be the first row that the model sees and the "
                "first that it does not."
            )
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
