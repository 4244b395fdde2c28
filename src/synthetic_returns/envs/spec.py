"""What an agent has to know about a task, wherever the task is computed."""

import abc

import numpy as np

__all__ = ["TaskSpec"]


class TaskSpec(abc.ABC):
    """The sizes of a task.

    Subclasses are ``@dataclasses.dataclass(frozen=True)``, so that a task is hashable and can be
    closed over by jitted functions; bad parameters are refused in ``__post_init__``.
    """

    @property
    @abc.abstractmethod
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation."""

    @property
    def observation_dtype(self) -> np.dtype:
        """How observations are kept; bytes stay bytes until a network scales them to [0, 1]."""
        return np.dtype(np.float32)

    @property
    @abc.abstractmethod
    def num_actions(self) -> int:
        """Actions are the integers below this."""

    @property
    @abc.abstractmethod
    def episode_steps(self) -> int:
        """The largest number of states in an episode that have a successor."""

    @property
    @abc.abstractmethod
    def event_names(self) -> tuple[str, ...]:
        """The keys of ``TimeStep.events``."""
