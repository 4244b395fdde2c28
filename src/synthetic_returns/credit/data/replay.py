"""How a credit method learns from finished episodes: how many are kept, and how often it trains."""

import dataclasses

from synthetic_returns.utils.checks import check_positive

__all__ = ["Replay"]

FEWEST = 4  # episodes in a batch; fewer would hardly tell what differs between them


@dataclasses.dataclass(frozen=True)
class Replay:
    """The buffer of finished episodes, and the updates made from it."""

    slots: int = 1024
    """Episodes to keep: one half the newest, the other half a sample of all older ones."""
    batch_size: int = 16
    """Episodes in one update."""
    updates_per_episode: float = 0.6
    """Updates for each finished episode."""
    batch_states: int | None = None
    """States in one update, at most: longer episodes come in smaller batches. Each holds many
    states, and training on them more often would overfit."""
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
        if self.batch_states is not None:
            check_positive("batch_states", self.batch_states)
        if not self.updates_per_episode >= 0:
            raise ValueError(
                f"updates_per_episode is {self.updates_per_episode}; it must be 0 or more."
            )

    def batch_of(self, steps: int) -> int:
        """How many episodes of ``steps`` steps are in one update."""
        if self.batch_states is None:
            return self.batch_size
        return min(self.batch_size, max(FEWEST, self.batch_states // steps))
