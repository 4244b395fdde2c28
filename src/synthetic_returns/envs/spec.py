"""What there is to know about a task, wherever it is computed."""

import abc
import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np

from synthetic_returns.envs.credit_measure import CreditMeasure

__all__ = ["EventMark", "FewStates", "Phases", "TaskSpec"]

Phases = tuple[tuple[str, int], ...]  # names, and the step at which each begins


@dataclasses.dataclass(frozen=True)
class EventMark:
    """How an event is marked in pictures."""

    shape: Literal["diamond", "circle", "square", "triangle", "cross", "star"]
    colour: Literal["green", "red", "purple", "gold", "blue", "grey"]


@dataclasses.dataclass(frozen=True)
class FewStates:
    """Every state of a task that has only few.

    Attributes:
      labels: names of the states.
      observations: what each of them looks like; no two look the same.
      decisive: the index of the state that the reward depends on.
    """

    labels: tuple[str, ...]
    observations: np.ndarray
    decisive: int

    def indices(self, observations: np.ndarray) -> np.ndarray:
        """Which state each observation shows."""
        same = observations[:, None] == self.observations[None]
        return np.argmax(np.all(same.reshape(*same.shape[:2], -1), axis=2), axis=1)


class TaskSpec(abc.ABC):
    """The sizes of a task, and what people and reports want to know about it.

    Subclasses are ``@dataclasses.dataclass(frozen=True)``, so that a task is hashable and can be
    closed over by jitted functions; bad parameters are refused in ``__post_init__``.

    Attributes:
      kind: which presets are meant for it: ``jax``, ``gymnasium`` or ``atari``.
      event_marks: how events are marked in pictures; those left out get a mark that is free.
      truncates: whether an episode may be cut off, so that it ends with a discount above 0.
    """

    event_marks: ClassVar[Mapping[str, EventMark]] = {}
    kind: ClassVar[str] = "jax"
    truncates: ClassVar[bool] = True

    @property
    @abc.abstractmethod
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation."""

    @property
    def observation_dtype(self) -> np.dtype:
        """How observations are kept; bytes stay bytes until a network scales them to [0, 1]."""
        return np.dtype(np.float32)

    @property
    def unbounded(self) -> bool:
        """Whether the size of the numbers of an observation is unknown."""
        return False

    @property
    @abc.abstractmethod
    def num_actions(self) -> int:
        """Actions are the integers below this."""

    @property
    @abc.abstractmethod
    def max_episode_steps(self) -> int:
        """The largest number of states in an episode that have a successor."""

    @property
    @abc.abstractmethod
    def event_names(self) -> tuple[str, ...]:
        """The keys of ``TimeStep.events``."""

    @property
    def has_script(self) -> bool:
        """Whether there is a scripted policy, ``optimal_action``."""
        return False

    @property
    def has_contributions(self) -> bool:
        """Whether the true contribution of every step is known."""
        return False

    @property
    def phases(self) -> Phases:
        """The parts that every episode goes through at fixed times; by default none."""
        return ()

    @property
    def credit_measure(self) -> CreditMeasure | None:
        """How to tell whether credit goes where it should; None if that is not known."""
        return None

    @property
    def few_states(self) -> FewStates | None:
        """All states, if they are so few that the credit of each can be shown; else None."""
        return None
