"""What the trainer needs of an engine, and which one a configuration asks for."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from synthetic_returns.agents.agent import Agent
from synthetic_returns.config import Config
from synthetic_returns.credit.explainer import Explainer
from synthetic_returns.engines.settings import ClusterSettings, LocalSettings

__all__ = ["ActorFailed", "Engine", "make_engine"]


class ActorFailed(RuntimeError):
    """An actor cannot continue; its own error is the cause of this one.

    The learner is intact, so its state can be saved.
    """


@runtime_checkable
class Engine(Protocol):
    """Trains agents, one for each seed, a step at a time.

    Attributes:
      config: the settings.
      steps_per_update: environment steps of an update, for each seed.
    """

    config: Config
    steps_per_update: int

    def step(self, at_most: int = 1) -> int:
        """Acts and learns.

        Args:
          at_most: updates to make before returning, if the engine can make several at once.

        Returns:
          How many updates there were, at least one.
        """
        ...

    def agent(self, index: int) -> Agent:
        """The agent of one seed."""
        ...

    def explainer(self, index: int) -> Explainer | None:
        """What explains the credit of one seed, if there is any."""
        ...

    def report(self) -> list[dict[str, float]]:
        """For every seed, the metrics since the last report."""
        ...

    def snapshot(self, index: int) -> dict[str, Any]:
        """Everything that one seed needs to continue later."""
        ...

    def restore(self, snapshots: Sequence[dict[str, Any]]) -> None:
        """Continues from the snapshots of every seed."""
        ...

    def close(self) -> None:
        """Ends threads and processes of the engine; harmless when repeated."""
        ...


def make_engine(config: Config, seeds: Sequence[int]) -> Engine:
    """The engine of a configuration, at the beginning of a run."""
    if isinstance(config.engine, LocalSettings):
        from synthetic_returns.engines.local import LocalEngine

        return LocalEngine(config, seeds)
    if isinstance(config.engine, ClusterSettings):
        from synthetic_returns.engines.cluster.engine import ClusterEngine

        return ClusterEngine(config, seeds)
    from synthetic_returns.engines.fused import FusedEngine

    return FusedEngine(config, seeds)
