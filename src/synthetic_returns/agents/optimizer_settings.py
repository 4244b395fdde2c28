"""The optimisers of the agent, each with its settings."""

import abc
import dataclasses
from typing import ClassVar

import optax

from synthetic_returns.agents.optimizers import adam
from synthetic_returns.utils.checks import check_not_negative, check_positive_number, check_share
from synthetic_returns.utils.suggestions import unknown

__all__ = ["OPTIMIZERS", "AdamSettings", "AnyOptimizer", "RMSPropSettings", "find_optimizer"]


@dataclasses.dataclass(frozen=True)
class OptimizerSettings(abc.ABC):
    """What all optimisers have in common: a learning rate, and gradient clipping."""

    name: ClassVar[str]

    learning_rate: float = 4e-4
    """Learning rate."""
    anneal: bool = False
    """Decrease the learning rate linearly to zero over --schedule-steps."""
    max_grad_norm: float = 40.0
    """Clip gradients to this global norm."""

    def __post_init__(self) -> None:
        check_not_negative("learning_rate", self.learning_rate)
        check_positive_number("max_grad_norm", self.max_grad_norm)

    def make(self, steps: int) -> optax.GradientTransformation:
        """The optimiser.

        Args:
          steps: optimisation steps until an annealed learning rate is zero.
        """
        rate = self.learning_rate
        if self.anneal:
            rate = optax.linear_schedule(rate, 0.0, steps)
        return optax.chain(optax.clip_by_global_norm(self.max_grad_norm), self._steps(rate))

    @abc.abstractmethod
    def _steps(self, learning_rate: float | optax.Schedule) -> optax.GradientTransformation: ...


@dataclasses.dataclass(frozen=True)
class RMSPropSettings(OptimizerSettings):
    """RMSProp, as the paper and IMPALA use it."""

    name: ClassVar[str] = "rmsprop"

    epsilon: float = 1e-4
    """Added to the mean square, inside the root."""
    decay: float = 0.99
    """Decay of the running mean square of gradients."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("epsilon", self.epsilon)
        check_share("decay", self.decay)

    def _steps(self, learning_rate: float | optax.Schedule) -> optax.GradientTransformation:
        return optax.rmsprop(learning_rate, decay=self.decay, eps=self.epsilon, eps_in_sqrt=True)


@dataclasses.dataclass(frozen=True)
class AdamSettings(OptimizerSettings):
    """Adam."""

    name: ClassVar[str] = "adam"

    epsilon: float = 1e-8
    """Added to the root of the mean square."""
    b1: float = 0.9
    """Decay of the running mean of gradients."""
    b2: float = 0.999
    """Decay of the running mean square of gradients."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("epsilon", self.epsilon)
        check_share("b1", self.b1)
        check_share("b2", self.b2)

    def _steps(self, learning_rate: float | optax.Schedule) -> optax.GradientTransformation:
        return adam(learning_rate, b1=self.b1, b2=self.b2, eps=self.epsilon)


AnyOptimizer = RMSPropSettings | AdamSettings
OPTIMIZERS: dict[str, type[AnyOptimizer]] = {
    kind.name: kind for kind in (RMSPropSettings, AdamSettings)
}


def find_optimizer(name: str) -> type[AnyOptimizer]:
    """The optimiser of this name."""
    if name not in OPTIMIZERS:
        raise ValueError(unknown("optimizer", name, OPTIMIZERS))
    return OPTIMIZERS[name]
