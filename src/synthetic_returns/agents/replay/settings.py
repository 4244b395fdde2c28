"""The settings of replay buffers."""

import dataclasses

from synthetic_returns.utils.checks import check_positive, check_share
from synthetic_returns.utils.meanings import NoMeaning, switched_off

__all__ = ["ReplaySettings", "SequenceReplaySettings", "UnrollReplaySettings"]


@dataclasses.dataclass(frozen=True)
class ReplaySettings:
    """Capacity of a replay buffer, and how often its credit is recomputed."""

    capacity: int = 100_000
    """Environment steps to keep, over all environments; new steps replace the oldest."""
    warmup: int = 2_000
    """Environment steps to gather before sampling starts."""
    relabel: float = 0.1
    """Recompute the credit of the whole buffer whenever this share of it is new, so that
    credit is never older. 0 computes credit once, when steps arrive."""
    save: bool = True
    """Save the buffer in checkpoints, so that a resumed run continues exactly. Switch it off
    if observations are too large to save every minute; a resumed run then starts with an
    empty buffer."""

    def __post_init__(self) -> None:
        check_positive("capacity", self.capacity)
        check_positive("warmup", self.warmup)
        check_share("relabel", self.relabel)


@dataclasses.dataclass(frozen=True)
class SequenceReplaySettings(ReplaySettings):
    """A prioritised replay buffer of sequences."""

    priority_exponent: float = 0.9
    """Exponent of the priorities: how much more often sequences with large errors are drawn;
    0 draws uniformly."""
    importance_exponent: float = 0.6
    """Exponent of the importance weights that correct for the priorities; 1 corrects fully."""
    largest_error: float = 0.9
    """Weight of a sequence's largest TD error in its priority; the rest is that of its mean."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("priority_exponent", "importance_exponent", "largest_error"):
            check_share(name, getattr(self, name))

    def meaningless(self) -> dict[str, NoMeaning]:
        """Weights that correct for priorities, if there are none."""
        if self.priority_exponent:
            return {}
        why = "which draws all sequences alike and leaves nothing to correct"
        return {"importance_exponent": NoMeaning("priority_exponent", why, "priority_exponent 0.9")}


@dataclasses.dataclass(frozen=True)
class UnrollReplaySettings(ReplaySettings):
    """A replay buffer of unrolls, drawn uniformly and added to the new ones."""

    share: float = 0.0
    """Share of replayed unrolls in the batch of an update; 0 for no replay."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.share < 1:
            raise ValueError(
                f"share is {self.share}; it must lie in [0, 1): new unrolls are always a part of "
                "an update."
            )

    def meaningless(self) -> dict[str, NoMeaning]:
        """All other settings, if the share is 0."""
        return {} if self.share else switched_off(self, "share", "the replay", "0.5")

    def beside(self, num_envs: int) -> int:
        """How many unrolls are replayed in addition to the new ones of these environments."""
        return round(num_envs * self.share / (1 - self.share))
