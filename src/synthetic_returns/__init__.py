"""Synthetic returns: long-term credit assignment for any reinforcement-learning agent.

The public API; nothing else is public. Names are loaded when they are first used, so that importing
the package, or asking the command line for help, does not load JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

from synthetic_returns.envs.registry import register_with_gymnasium

if TYPE_CHECKING:
    from synthetic_returns.config import Config
    from synthetic_returns.credit.episodes import Episode
    from synthetic_returns.credit.episodic.learner import EpisodicLearner
    from synthetic_returns.credit.episodic.options import EpisodicOptions
    from synthetic_returns.credit.explanation import Explanation, Term
    from synthetic_returns.credit.paper.association import Association, associate
    from synthetic_returns.credit.paper.memory import EpisodicMemory
    from synthetic_returns.credit.paper.sa_model import ContributionModel, StateAssociativeModel
    from synthetic_returns.credit.rewards import augmented_reward
    from synthetic_returns.envs.base import Environment, VectorEnvironment
    from synthetic_returns.envs.registry import make
    from synthetic_returns.presets import preset
    from synthetic_returns.training.runs import Run
    from synthetic_returns.training.trainer import train
    from synthetic_returns.types import StepType, TimeStep
    from synthetic_returns.viewer.frames import frames_of_observations
    from synthetic_returns.viewer.recording import Recording
    from synthetic_returns.viewer.viewer import write_view
    from synthetic_returns.wrappers.sb3 import SyntheticReturnsCallback, SyntheticReturnsVecEnv
    from synthetic_returns.wrappers.vector import SyntheticReturnsVectorWrapper

_HOMES = {
    "Association": "credit.paper.association",
    "Config": "config",
    "ContributionModel": "credit.paper.sa_model",
    "Environment": "envs.base",
    "Episode": "credit.episodes",
    "EpisodicLearner": "credit.episodic.learner",
    "EpisodicMemory": "credit.paper.memory",
    "EpisodicOptions": "credit.episodic.options",
    "Explanation": "credit.explanation",
    "Recording": "viewer.recording",
    "Run": "training.runs",
    "StateAssociativeModel": "credit.paper.sa_model",
    "StepType": "types",
    "SyntheticReturnsCallback": "wrappers.sb3",
    "SyntheticReturnsVecEnv": "wrappers.sb3",
    "SyntheticReturnsVectorWrapper": "wrappers.vector",
    "Term": "credit.explanation",
    "TimeStep": "types",
    "VectorEnvironment": "envs.base",
    "associate": "credit.paper.association",
    "augmented_reward": "credit.rewards",
    "make": "envs.registry",
    "preset": "presets",
    "train": "training.trainer",
    "frames_of_observations": "viewer.frames",
    "write_view": "viewer.viewer",
}

__all__ = [
    "Association",
    "Config",
    "ContributionModel",
    "Environment",
    "Episode",
    "EpisodicLearner",
    "EpisodicMemory",
    "EpisodicOptions",
    "Explanation",
    "Recording",
    "Run",
    "StateAssociativeModel",
    "StepType",
    "SyntheticReturnsCallback",
    "SyntheticReturnsVecEnv",
    "SyntheticReturnsVectorWrapper",
    "Term",
    "TimeStep",
    "VectorEnvironment",
    "associate",
    "augmented_reward",
    "frames_of_observations",
    "make",
    "preset",
    "train",
    "write_view",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'synthetic_returns' has no attribute {name!r}")
    return getattr(importlib.import_module(f"synthetic_returns.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


register_with_gymnasium()
