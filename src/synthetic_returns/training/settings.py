"""The settings of what a run writes down about itself."""

import dataclasses

from synthetic_returns.utils.checks import check_positive

__all__ = ["ReportingSettings"]


@dataclasses.dataclass(frozen=True)
class ReportingSettings:
    """How often a run reports, and how it is evaluated."""

    log_every: int = 20_000
    """Environment steps between two rows of metrics."""
    checkpoint_every: float = 60.0
    """Seconds between two checkpoints."""
    eval_episodes: int = 200
    """Episodes of the final evaluation."""
    traces: int = 3
    """How often to record example episodes with their credit, evenly over training."""

    def __post_init__(self) -> None:
        check_positive("log_every", self.log_every)
        check_positive("eval_episodes", self.eval_episodes)
        if not self.checkpoint_every >= 0:
            raise ValueError(
                f"checkpoint_every is {self.checkpoint_every}; use 0 for a checkpoint with every "
                "row of metrics, or a number of seconds."
            )
        if self.traces < 0:
            raise ValueError(f"traces is {self.traces}; use 0 for none, or how many to record.")
