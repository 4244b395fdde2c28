"""What engines whose actors run apart from the learner have in common."""

from collections.abc import Sequence

from synthetic_returns.agents.agent import Agent
from synthetic_returns.config import Config
from synthetic_returns.credit.explainer import Explainer
from synthetic_returns.engines.unroll_learner import UnrollLearner

__all__ = ["UnrollEngine"]


class UnrollEngine:
    """One agent, and the learner that takes the unrolls of its actors.

    Attributes:
      config: the settings.
      steps_per_update: environment steps of an update.
    """

    def __init__(
        self, config: Config, seeds: Sequence[int], streams: int, num_envs: int | None = None
    ):
        """Draws all parameters.

        Args:
          config: the settings.
          seeds: a single one.
          streams: how many actors send unrolls.
          num_envs: environments of each; by default the whole batch of an update.
        """
        if len(seeds) != 1:
            raise ValueError(
                f"there are {len(seeds)} seeds and the engine {config.engine.name!r} trains one at "
                "a time: train them one by one, or use the engine 'fused' if the task is written "
                "in JAX."
            )
        self.config = config
        self.steps_per_update = config.engine.steps_per_update
        self._learner = UnrollLearner(config, seeds[0], streams=streams, num_envs=num_envs)

    def agent(self, index: int) -> Agent:
        """The agent as it is now."""
        del index
        return self._learner.agent

    def explainer(self, index: int) -> Explainer | None:
        """What explains the credit, if there is any."""
        del index
        return self._learner.explainer
