"""How a credit method learns from finished episodes: how many are kept, and how often it trains."""

import dataclasses

from synthetic_returns.utils.checks import check_positive

__all__ = ["Replay"]


@dataclasses.dataclass(frozen=True)
class Replay:
    """The buffer of finished episodes, and the updates made from it."""

    slots: int = 1024
    """Episodes to keep: one half the newest, the other half a sample of all older ones."""
    batch_size: int = 16
    """Episodes in one update."""
    updates_per_episode: float = 0.6
    """Updates for each finished episode."""
    warmup: int = 1
    """Episodes to gather before the first update."""
    save: bool = True
    """Save the episodes in checkpoints, so that a resumed run continues exactly. Switch it off
    if observations are too large to save every minute; a resumed run then gathers new
    episodes first."""
    same_age: bool = False
    """Draw the episodes of an update from about the same time, so that they differ in what
    happened, not in the policy."""

    def __post_init__(self) -> None:
        check_positive("batch_size", self.batch_size)
        check_positive("warmup", self.warmup)
        if self.slots < 2:
            raise ValueError(
                f"slots is {self.slots}; keep at least 2 episodes, one of the newest and one older."
            )
        if not self.updates_per_episode >= 0:
            raise ValueError(
                f"updates_per_episode is {self.updates_per_episode}; it must be 0 or more."
            )
