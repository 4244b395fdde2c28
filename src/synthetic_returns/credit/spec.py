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
      observation_dtype: of it.
      max_steps: the largest number of states with a successor in an episode.
      num_actions: actions are the integers below this; None where they are something else.
      action_shape: of one action.
      action_dtype: how actions are kept; None where they are not known.
      has_policy: whether the agent's values, and its log-probabilities of all actions, are known.
      has_contributions: whether the true contribution of every step is known.
      stride: how many steps of the task lie between two states of an episode. Running segments are
        not thinned, so their clock goes that much faster; ``Assignment`` says how they are paid.
      frames: where observations are differences of frames, the type of these frames. The frames
        are kept, one more than there are differences; methods see the differences.
      kinds: for observations that are one of a few numbers, how many there are; else 0.
      channels_first: whether the channels of an image come before its sides.
      scale: what brings observations to about 1, if the task says; bytes are always scaled.
      unbounded: whether the size of observations is unknown, so that encoders standardise them by
        the episodes seen so far.
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
    frames: np.dtype | None = None
    kinds: int = 0
    channels_first: bool = False
    scale: np.ndarray | None = None
    unbounded: bool = False
    encoder: Callable[[Array], Array] | None = None

    @property
    def entries(self) -> dict[str, tuple[tuple[int, ...], Any]]:
        """The arrays known for each step of an episode, with shape and type."""
        entries: dict[str, tuple[tuple[int, ...], Any]] = {
            "observation": (self.kept_shape, self.kept_dtype),
            "reward": ((), np.float32),
            "discount": ((), np.float32),
        }
        if self.action_dtype is not None:
            entries["action"] = self.action_shape, self.action_dtype
        if self.has_policy:
            entries |= {
                "log_probs": ((self.num_actions or 0,), np.float32),
                "value": ((), np.float32),
            }
        return entries

    @property
    def kept_shape(self) -> tuple[int, ...]:
        """The shape of an observation in buffers."""
        shape = self.observation_shape
        return shape if self.frames is None else (*shape[:-1], shape[-1] + 1)

    @property
    def kept_dtype(self) -> np.dtype:
        """The type of an observation in buffers."""
        return self.observation_dtype if self.frames is None else self.frames

    @classmethod
    def seen(
        cls,
        view: View,
        shape: tuple[int, ...],
        dtype: np.dtype,
        max_episode_steps: int,
        *,
        scale: np.ndarray | None = None,
        **known: Any,
    ) -> "EpisodeSpec":
        """What a view shows of episodes.

        Args:
          view: the view.
          shape: of one observation of the task.
          dtype: of it.
          max_episode_steps: length of the longest episode.
          scale: what brings observations to about 1, if the task says.
          **known: all else.
        """
        if view.changes and scale is not None and dtype == np.uint8:
            scale = np.asarray(255 * scale)  # differences of bytes are shares of 255 already
        return cls(
            observation_shape=view.shape(shape),
            observation_dtype=np.dtype(np.float32) if view.changes else dtype,
            max_steps=view.kept(max_episode_steps),
            stride=view.stride,
            frames=dtype if view.changes else None,
            scale=scale,
            **known,
        )

    @classmethod
    def of_task(cls, task: TaskSpec, view: View) -> "EpisodeSpec":
        """The episodes of a task."""
        return cls.seen(
            view,
            task.observation_shape,
            np.dtype(task.observation_dtype),
            task.max_episode_steps,
            num_actions=task.num_actions,
            has_policy=True,
            has_contributions=task.has_contributions,
            unbounded=task.unbounded,
        )
