"""The settings of IMPALA."""

import dataclasses
from typing import ClassVar

from synthetic_returns.agents.replay.settings import UnrollReplaySettings
from synthetic_returns.nn.settings import TorsoSettings, check_core
from synthetic_returns.utils.checks import check_not_negative, check_positive, check_share
from synthetic_returns.utils.meanings import NoMeaning

__all__ = ["ImpalaSettings"]


@dataclasses.dataclass(frozen=True)
class ImpalaSettings:
    """An actor-critic that learns from unrolls as they arrive, with V-trace correction."""

    name: ClassVar[str] = "impala"

    discount: float = 0.9
    """Discount of future rewards."""
    trace_decay: float = 1.0
    """Lambda of V-trace."""
    entropy_cost: float = 0.01
    """Weight of the entropy bonus."""
    entropy_decay: float = 0.0
    """Share of the entropy bonus that is removed linearly over the run; 0 keeps it constant."""
    value_cost: float = 0.5
    """Weight of the value loss, which is half of the squared error."""
    action_prior: float = 0.0
    """Initial probability of action 0; the entropy bonus pulls towards it, too. For tasks in
    which random actions lead nowhere. 0 for a uniform policy."""
    epochs: int = 1
    """Optimisation steps on each unroll, with V-trace correction. Use more than one if
    experience costs more than computing."""
    replay: UnrollReplaySettings = dataclasses.field(default=UnrollReplaySettings())
    """Replay buffer of earlier unrolls."""

    torso: TorsoSettings = dataclasses.field(default=TorsoSettings(channels=(32, 64)))
    """From observations to features."""
    lstm_size: int = 256
    """Units of the LSTM; 0 for an agent without memory."""
    clock: bool = False
    """Give an agent without memory the time since the start of the episode."""
    policy_size: int = 256
    """Units of the layer before the policy and value heads."""

    def __post_init__(self) -> None:
        check_positive("epochs", self.epochs)
        check_positive("policy_size", self.policy_size)
        for name in ("entropy_cost", "value_cost"):
            check_not_negative(name, getattr(self, name))
        for name in ("discount", "trace_decay"):
            check_share(name, getattr(self, name))
        if not 0 <= self.entropy_decay <= 1:
            raise ValueError(
                f"entropy_decay is {self.entropy_decay}; it is a share of entropy_cost and must "
                "lie in [0, 1]."
            )
        if not 0 <= self.action_prior < 1:
            raise ValueError(
                f"action_prior is {self.action_prior}; it is a probability and must lie in [0, 1)."
            )
        check_core(self.lstm_size, clock=self.clock)

    def meaningless(self) -> dict[str, NoMeaning]:
        """The decay of an entropy bonus, if there is none."""
        if self.entropy_cost:
            return {}
        why = "which is no bonus that could decay"
        return {"entropy_decay": NoMeaning("entropy_cost", why, "entropy_cost 0.01")}
