"""The choices of the episodic learner."""

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

from synthetic_returns.utils.checks import check_positive

if TYPE_CHECKING:
    from synthetic_returns.credit.episodic.method import Episodic
    from synthetic_returns.credit.view import View

__all__ = ["EpisodicOptions", "episodic_options"]


@dataclasses.dataclass(frozen=True)
class EpisodicOptions:
    """The named choices of the episodic learner; each can be switched off on its own."""

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
    """Scale alpha by how far predictions held on episodes that were not yet trained on."""
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
    given. For tasks in which what matters is always at one place."""
    columns: tuple[int, int] | None = None
    """The first column of an image that the model sees and the first that it does not."""
    changes: bool = False
    """Show the model how each frame of an image differs from the one before it instead of the
    frames: where nothing changes, all states are alike."""
    channels: tuple[int, ...] = ()
    """Output channels of the encoder's convolutions; without any, it is an MLP."""
    patches: tuple[int, ...] = ()
    """Instead of kernel and stride: the side of the patches that each of the first layers cuts its
    input into."""
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
        for name in ("rows", "columns"):
            part = getattr(self, name)
            if part is not None and not 0 <= part[0] < part[1]:
                raise ValueError(
                    f"{name} is {part}; it has to be the first that the model sees and the first "
                    "that it does not."
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

    def seen_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the part of an observation that the model sees."""
        parts = (self.rows, self.columns)
        if parts == (None, None):
            return shape
        if len(shape) != 3 or any(
            part is not None and part[1] > size for part, size in zip(parts, shape[:2], strict=True)
        ):
            raise ValueError(
                f"rows is {self.rows}, columns is {self.columns} and an observation has shape "
                f"{shape}; they are for images of shape (height, width, channels), and must lie "
                "within them: use None to see all."
            )
        height, width = (
            size if part is None else part[1] - part[0]
            for part, size in zip(parts, shape[:2], strict=True)
        )
        return (height, width, shape[2])

    def seen(self, observation: Any) -> Any:
        """The part of observations that the model sees."""
        if self.rows is not None:
            observation = observation[..., slice(*self.rows), :, :]
        if self.columns is not None:
            observation = observation[..., slice(*self.columns), :]
        return observation


def episodic_options(method: "Episodic", view: "View") -> EpisodicOptions:
    """The options of a method that sees a view of its task."""
    encoder, replay = method.encoder, method.replay
    return EpisodicOptions(
        centred=method.centred,
        encoder_gradient=method.encoder_gradient,
        gate=method.gate,
        sparsity=method.sparsity,
        time_features=method.time_features,
        two_stage=method.two_stage,
        standardise=method.standardise,
        horizon=method.horizon,
        trust=method.trust,
        current=method.current,
        end=method.end,
        truncated_reward=view.truncated_reward,
        every=view.stride,
        rows=view.rows,
        columns=view.columns,
        changes=view.changes,
        channels=encoder.channels,
        patches=encoder.patches,
        kernel=encoder.kernel,
        stride=encoder.stride,
        encoder_sizes=encoder.sizes,
        head_sizes=method.head_sizes,
        learning_rate=method.learning_rate,
        slots=replay.slots,
        batch_size=replay.batch_size,
        updates_per_episode=replay.updates_per_episode,
        warmup=replay.warmup,
        save_episodes=replay.save,
    )
