"""Synthetic returns: long-term credit assignment for any reinforcement-learning agent.

The public API; nothing else is public. Names are loaded when they are first used, so that importing
the package, or asking the command line for help, does not load JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

from synthetic_returns.envs.registry import register_with_gymnasium

if TYPE_CHECKING:
    from synthetic_returns.config import Config
    from synthetic_returns.credit.advance.method import Advance
    from synthetic_returns.credit.data.episode import Episode, EpisodeBatch, Segment
    from synthetic_returns.credit.data.replay import Replay
    from synthetic_returns.credit.driver import CreditDriver
    from synthetic_returns.credit.episodic.method import Episodic
    from synthetic_returns.credit.explanation import Explanation, Term
    from synthetic_returns.credit.hindsight_actions.cocoa import Cocoa
    from synthetic_returns.credit.hindsight_actions.hca import Hca
    from synthetic_returns.credit.method import Assigner, Assignment, CreditMethod, Gives, Need
    from synthetic_returns.credit.oracle import Oracle
    from synthetic_returns.credit.pairwise.method import Pairwise, SaAlone
    from synthetic_returns.credit.paper.association import Association, associate
    from synthetic_returns.credit.paper.memory import EpisodicMemory
    from synthetic_returns.credit.paper.method import Paper
    from synthetic_returns.credit.paper.sa_model import ContributionModel, StateAssociativeModel
    from synthetic_returns.credit.redistribution.decomposition import Decomposition
    from synthetic_returns.credit.redistribution.rrd import Rrd
    from synthetic_returns.credit.redistribution.uniform import Uniform
    from synthetic_returns.credit.registry import register_method
    from synthetic_returns.credit.rewards import augmented_reward
    from synthetic_returns.credit.rudder.method import Rudder
    from synthetic_returns.credit.secret import Secret
    from synthetic_returns.credit.spec import EpisodeSpec
    from synthetic_returns.credit.tvt.method import Tvt
    from synthetic_returns.credit.view import View
    from synthetic_returns.envs.base import Environment, VectorEnvironment
    from synthetic_returns.envs.gymnax_adapter import GymnaxEnvironment
    from synthetic_returns.envs.registry import make, register_task
    from synthetic_returns.envs.task import Task
    from synthetic_returns.nn.settings import TorsoSettings
    from synthetic_returns.presets import preset
    from synthetic_returns.recorded.credit import Credit
    from synthetic_returns.recorded.score import Score
    from synthetic_returns.training.runs import Run
    from synthetic_returns.training.trainer import train
    from synthetic_returns.types import StepType, TimeStep
    from synthetic_returns.viewer.frames import frames_of_observations
    from synthetic_returns.viewer.recording import Recording
    from synthetic_returns.viewer.view_run import RecordedRun, record_run
    from synthetic_returns.viewer.viewer import write_view
    from synthetic_returns.wrappers.rllib import CreditCallback
    from synthetic_returns.wrappers.sb3 import SyntheticReturnsCallback, SyntheticReturnsVecEnv
    from synthetic_returns.wrappers.sb3_replay import (
        CreditNStepReplayBuffer,
        CreditReplayBuffer,
        with_credit,
    )
    from synthetic_returns.wrappers.torchrl import CreditTransform
    from synthetic_returns.wrappers.vector import SyntheticReturnsVectorWrapper

_HOMES = {
    "Advance": "credit.advance.method",
    "Association": "credit.paper.association",
    "Cocoa": "credit.hindsight_actions.cocoa",
    "Hca": "credit.hindsight_actions.hca",
    "Pairwise": "credit.pairwise.method",
    "SaAlone": "credit.pairwise.method",
    "Secret": "credit.secret",
    "Tvt": "credit.tvt.method",
    "Config": "config",
    "ContributionModel": "credit.paper.sa_model",
    "Environment": "envs.base",
    "Assigner": "credit.method",
    "Assignment": "credit.method",
    "Credit": "recorded.credit",
    "CreditCallback": "wrappers.rllib",
    "CreditDriver": "credit.driver",
    "CreditMethod": "credit.method",
    "CreditNStepReplayBuffer": "wrappers.sb3_replay",
    "CreditReplayBuffer": "wrappers.sb3_replay",
    "CreditTransform": "wrappers.torchrl",
    "Episode": "credit.data.episode",
    "EpisodeBatch": "credit.data.episode",
    "EpisodeSpec": "credit.spec",
    "Episodic": "credit.episodic.method",
    "EpisodicMemory": "credit.paper.memory",
    "Need": "credit.method",
    "Gives": "credit.method",
    "GymnaxEnvironment": "envs.gymnax_adapter",
    "Oracle": "credit.oracle",
    "Paper": "credit.paper.method",
    "Decomposition": "credit.redistribution.decomposition",
    "Rrd": "credit.redistribution.rrd",
    "Rudder": "credit.rudder.method",
    "Uniform": "credit.redistribution.uniform",
    "Replay": "credit.data.replay",
    "Score": "recorded.score",
    "Segment": "credit.data.episode",
    "TorsoSettings": "nn.settings",
    "View": "credit.view",
    "register_method": "credit.registry",
    "Explanation": "credit.explanation",
    "RecordedRun": "viewer.view_run",
    "Recording": "viewer.recording",
    "Run": "training.runs",
    "StateAssociativeModel": "credit.paper.sa_model",
    "StepType": "types",
    "SyntheticReturnsCallback": "wrappers.sb3",
    "SyntheticReturnsVecEnv": "wrappers.sb3",
    "SyntheticReturnsVectorWrapper": "wrappers.vector",
    "Task": "envs.task",
    "Term": "credit.explanation",
    "TimeStep": "types",
    "VectorEnvironment": "envs.base",
    "associate": "credit.paper.association",
    "augmented_reward": "credit.rewards",
    "make": "envs.registry",
    "preset": "presets",
    "record_run": "viewer.view_run",
    "register_task": "envs.registry",
    "train": "training.trainer",
    "frames_of_observations": "viewer.frames",
    "with_credit": "wrappers.sb3_replay",
    "write_view": "viewer.viewer",
}

__all__ = [
    "Advance",
    "Assigner",
    "Assignment",
    "Association",
    "Cocoa",
    "Config",
    "ContributionModel",
    "Credit",
    "CreditCallback",
    "CreditDriver",
    "CreditMethod",
    "CreditNStepReplayBuffer",
    "CreditReplayBuffer",
    "CreditTransform",
    "Decomposition",
    "Environment",
    "Episode",
    "EpisodeBatch",
    "EpisodeSpec",
    "Episodic",
    "EpisodicMemory",
    "Explanation",
    "Gives",
    "GymnaxEnvironment",
    "Hca",
    "Need",
    "Oracle",
    "Pairwise",
    "Paper",
    "RecordedRun",
    "Recording",
    "Replay",
    "Rrd",
    "Rudder",
    "Run",
    "SaAlone",
    "Score",
    "Secret",
    "Segment",
    "StateAssociativeModel",
    "StepType",
    "SyntheticReturnsCallback",
    "SyntheticReturnsVecEnv",
    "SyntheticReturnsVectorWrapper",
    "Task",
    "Term",
    "TimeStep",
    "TorsoSettings",
    "Tvt",
    "Uniform",
    "VectorEnvironment",
    "View",
    "associate",
    "augmented_reward",
    "frames_of_observations",
    "make",
    "preset",
    "record_run",
    "register_method",
    "register_task",
    "train",
    "with_credit",
    "write_view",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'synthetic_returns' has no attribute {name!r}")
    return getattr(importlib.import_module(f"synthetic_returns.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


register_with_gymnasium()
