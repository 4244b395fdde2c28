"""The learner of every agent."""

import importlib

from synthetic_returns.agents.agent import AgentLearner
from synthetic_returns.config import Config

__all__ = ["make_learner"]

# Where the learners are, by the name of their settings; each is loaded when it is asked for.
_HOMES = {
    "impala": "synthetic_returns.agents.impala.learner:Learner",
    "r2d2": "synthetic_returns.agents.r2d2.learner:Learner",
}


def make_learner(config: Config, axis: str | None = None) -> AgentLearner:
    """The learner of a configuration.

    Args:
      config: the settings.
      axis: name of the device axis that the batch is spread over, if it is.
    """
    module, _, name = _HOMES[config.agent.name].partition(":")
    return getattr(importlib.import_module(module), name)(config, axis)
