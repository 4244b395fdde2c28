"""The settings of a replay of sequences."""

import dataclasses

from synthetic_returns.utils.checks import check_positive

__all__ = ["SequenceReplaySettings"]


@dataclasses.dataclass(frozen=True)
class SequenceReplaySettings:
    """How much experience is kept, and what is drawn from it."""

    capacity: int = 100_000
    """Environment steps kept, over all environments; the oldest make room."""
    warmup: int = 2_000
    """Environment steps to gather before the first update."""
    priority_exponent: float = 0.9
    """How much more often sequences with large errors are drawn; 0 draws all alike."""
    importance_exponent: float = 0.6
    """How far importance weights make up for that; 1 does so in full."""
    largest_error: float = 0.9
    """Weight of the largest error of a sequence in its priority; the rest is that of the mean."""
    relabel: float = 0.1
    """Recompute the credit of the whole replay whenever this share of it is new, so that credit is
    never older. 0 computes it once, as steps arrive."""
    save: bool = True
    """Keep the replay in checkpoints, so that a resumed run continues exactly. Without it a resumed
    run first gathers new experience: for observations too large to save every minute."""

    def __post_init__(self) -> None:
        check_positive("capacity", self.capacity)
        check_positive("warmup", self.warmup)
        for name in ("priority_exponent", "importance_exponent", "largest_error", "relabel"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ValueError(f"{name} is {value}; it must lie in [0, 1].")
