"""What a credit method is told about the episodes that it will see."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Array

from synthetic_returns.credit.view import View
from synthetic_returns.envs.spec import TaskSpec

__all__ = ["EpisodeSpec"]


@dataclasses.dataclass(frozen=True, eq=False)
class EpisodeSpec:
    """The sizes of episodes, as the view of the task shows them.

    Attributes:
      observation_shape: of one observation.
      observation_dtype: how observations are kept.
      max_steps: the largest number of states with a successor in an episode.
      num_actions: actions are the integers below this; None where they are something else.
      action_shape: of one action.
      action_dtype: how actions are kept; None where they are not known.
      has_policy: whether the agent's values, and its log-probabilities of all actions, are known.
      has_contributions: whether the true contribution of every step is known.
      stride: how many steps of the task lie between two states.
      changes: whether the frames of an observation are to be seen as differences.
      kinds: for observations that are one of a few numbers, how many there are; else 0.
      channels_first: whether the channels of an image come before its sides.
      scale: what brings observations to about 1, if the task says; bytes are always scaled.
      encoder: the user's own, from observations to features; None for one that suits.
    """

    observation_shape: tuple[int, ...]
    observation_dtype: np.dtype
    max_steps: int
    num_actions: int | None = None
    action_shape: tuple[int, ...] = ()
    action_dtype: Any = np.int32
    has_policy: bool = False
    has_contributions: bool = False
    stride: int = 1
    changes: bool = False
    kinds: int = 0
    channels_first: bool = False
    scale: np.ndarray | None = None
    encoder: Callable[[Array], Array] | None = None

    def knows(self, field: str) -> bool:
        """Whether ``action``, ``log_probs`` or ``value`` of a step is known."""
        return self.action_dtype is not None if field == "action" else self.has_policy

    def entry(self, field: str) -> tuple[tuple[int, ...], Any]:
        """The shape and type of ``action``, ``log_probs`` or ``value`` of one step."""
        if field == "action":
            return self.action_shape, self.action_dtype
        return ((self.num_actions or 0,) if field == "log_probs" else ()), np.float32

    @classmethod
    def of_task(cls, task: TaskSpec, view: View) -> "EpisodeSpec":
        """The episodes of a task."""
        return cls(
            observation_shape=view.shape(task.observation_shape),
            observation_dtype=task.observation_dtype,
            max_steps=view.kept(task.max_episode_steps),
            num_actions=task.num_actions,
            has_policy=True,
            has_contributions=task.has_contributions,
            stride=view.stride,
            changes=view.changes,
        )
