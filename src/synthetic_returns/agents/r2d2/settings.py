"""The settings of R2D2."""

import dataclasses
from typing import ClassVar

from synthetic_returns.agents.replay.settings import SequenceReplaySettings
from synthetic_returns.nn.settings import TorsoSettings, check_core
from synthetic_returns.utils.checks import check_not_negative, check_positive, check_share
from synthetic_returns.utils.meanings import NoMeaning, switched_off

__all__ = ["BanditSettings", "R2D2Settings"]


@dataclasses.dataclass(frozen=True)
class BanditSettings:
    """A bandit that chooses a discount and an exploration rate for each episode (Agent57)."""

    arms: int = 0
    """Arms, each a pair of discount and epsilon. 0 for no bandit: one discount, and a fixed
    epsilon for each environment."""
    least_discount: float = 0.9
    """Discount of the arm with the most exploration; the other end has the agent's discount."""
    window: int = 50
    """Number of newest episodes of an environment by which its arms are judged."""
    bonus: float = 1.0
    """Weight of the UCB bonus for arms that were played rarely; the returns of the window are
    scaled to [0, 1]."""
    random: float = 0.1
    """Share of episodes with a random arm."""

    def __post_init__(self) -> None:
        if self.arms == 1 or self.arms < 0:
            raise ValueError(f"arms is {self.arms}; use 0 for no bandit, or at least 2.")
        if self.arms and self.window <= self.arms:
            raise ValueError(
                f"window is {self.window} and arms is {self.arms}; it must hold more episodes than "
                "arms."
            )
        check_not_negative("bonus", self.bonus)
        for name in ("random", "least_discount"):
            check_share(name, getattr(self, name))

    def meaningless(self) -> dict[str, NoMeaning]:
        """All other settings, if there are no arms."""
        return {} if self.arms else switched_off(self, "arms", "the bandit", "8")


@dataclasses.dataclass(frozen=True)
class R2D2Settings:
    """Recurrent double Q-learning from a replay buffer of sequences (Kapturowski et al. 2019).

    With ``lstm_size`` 0 it is DQN with everything that R2D2 adds except the recurrence.
    """

    name: ClassVar[str] = "r2d2"

    discount: float = 0.99
    """Discount of future rewards."""
    n_step: int = 5
    """Rewards in a target before it bootstraps (n-step returns)."""
    value_rescaling: bool = True
    """Learn rescaled values, h(x) = sign(x) (sqrt(|x| + 1) - 1) + 0.001 x."""
    batch_size: int = 32
    """Sequences in one update."""
    sequence_length: int = 20
    """Steps of each sequence that the agent learns from."""
    burn_in: int = 0
    """Steps before these that only update the stored state of the LSTM."""
    updates_per_unroll: int = 4
    """Optimisation steps after each unroll."""
    target_period: int = 100
    """Updates between two copies of the network to the target network."""
    epsilon: float = 0.4
    """Share of random actions in the environment with the most exploration."""
    epsilon_alpha: float = 7.0
    """Environment i of N explores with epsilon^(1 + alpha i / (N - 1)). Evaluation uses the
    smallest of these."""
    bandit: BanditSettings = dataclasses.field(default=BanditSettings())
    """Bandit that chooses discount and exploration for each episode."""
    replay: SequenceReplaySettings = dataclasses.field(default=SequenceReplaySettings())
    """Replay buffer of sequences."""

    torso: TorsoSettings = dataclasses.field(default=TorsoSettings(channels=(32, 64)))
    """From observations to features."""
    lstm_size: int = 256
    """Units of the LSTM; 0 for an agent without memory."""
    clock: bool = False
    """Give an agent without memory the time since the start of the episode."""
    policy_size: int = 256
    """Units of the layers before the value and before the advantages."""

    def __post_init__(self) -> None:
        for name in ("n_step", "batch_size", "sequence_length", "updates_per_unroll"):
            check_positive(name, getattr(self, name))
        for name in ("target_period", "policy_size"):
            check_positive(name, getattr(self, name))
        check_share("discount", self.discount)
        if self.burn_in < 0:
            raise ValueError(f"burn_in is {self.burn_in}; use 0 for none, or a number of steps.")
        if not 0 < self.epsilon <= 1:
            raise ValueError(
                f"epsilon is {self.epsilon}; it is a share of random actions and must lie in "
                "(0, 1]: without any, nothing new is tried."
            )
        check_not_negative("epsilon_alpha", self.epsilon_alpha)
        check_core(self.lstm_size, clock=self.clock)
