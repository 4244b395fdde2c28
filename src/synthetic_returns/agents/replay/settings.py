"""The settings of replays."""

import dataclasses

from synthetic_returns.utils.checks import check_positive

__all__ = ["ReplaySettings", "SequenceReplaySettings", "UnrollReplaySettings"]


@dataclasses.dataclass(frozen=True)
class ReplaySettings:
    """How much experience is kept, and how it is paid."""

    capacity: int = 100_000
    """Environment steps kept, over all environments; the oldest make room."""
    warmup: int = 2_000
    """Environment steps to gather before any are drawn."""
    relabel: float = 0.1
    """Recompute the credit of the whole replay whenever this share of it is new, so that credit is
    never older. 0 computes it once, as steps arrive."""
    save: bool = True
    """Keep the replay in checkpoints, so that a resumed run continues exactly. Without it a resumed
    run first gathers new experience: for observations too large to save every minute."""

    def __post_init__(self) -> None:
        check_positive("capacity", self.capacity)
        check_positive("warmup", self.warmup)
        self._check_shares("relabel")

    def _check_shares(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ValueError(f"{name} is {value}; it must lie in [0, 1].")


@dataclasses.dataclass(frozen=True)
class SequenceReplaySettings(ReplaySettings):
    """A replay of sequences that are drawn by priority."""

    priority_exponent: float = 0.9
    """How much more often sequences with large errors are drawn; 0 draws all alike."""
    importance_exponent: float = 0.6
    """How far importance weights make up for that; 1 does so in full."""
    largest_error: float = 0.9
    """Weight of the largest error of a sequence in its priority; the rest is that of the mean."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_shares("priority_exponent", "importance_exponent", "largest_error")


@dataclasses.dataclass(frozen=True)
class UnrollReplaySettings(ReplaySettings):
    """A replay of unrolls, all alike, beside those that come."""

    share: float = 0.0
    """The share of the unrolls of an update that are replayed; 0 for no replay."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.share < 1:
            raise ValueError(
                f"share is {self.share}; it must lie in [0, 1): new unrolls are always a part of "
                "an update."
            )

    def beside(self, envs: int) -> int:
        """How many are replayed beside the new unrolls of so many environments."""
        return round(envs * self.share / (1 - self.share))
