"""Tasks with so few states that the credit of every one of them can be shown."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from synthetic_returns.agents.impala.learner import Agent
from synthetic_returns.config import Config
from synthetic_returns.credit.episodic.state import EpisodicState
from synthetic_returns.envs.chain import Chain
from synthetic_returns.envs.spec import TaskSpec
from synthetic_returns.training.explanation import contribution

__all__ = ["StateBars", "place_in_bars", "state_bars"]


@dataclasses.dataclass(frozen=True)
class StateBars:
    """One bar for each state, as in the paper's figure of the Chain.

    Attributes:
      labels: names of the states.
      credit: of each.
      decisive: the index of the state that the reward depends on.
    """

    labels: tuple[str, ...]
    credit: np.ndarray
    decisive: int


def state_bars(config: Config, agent: Agent, credit: EpisodicState | None) -> StateBars | None:
    """The bars of a task whose states are one-hot codes; None for any other and without credit."""
    task = config.task
    if not isinstance(task, Chain):
        return None
    centre = task.length // 2
    positions = (f"{cell - centre:+d}" if cell != centre else "0" for cell in range(task.length))
    values = contribution(config, agent, credit, jnp.eye(task.length + 1))
    if values is None:
        return None
    return StateBars(
        labels=(*positions, "end"),
        credit=np.asarray(values),
        decisive=centre + task.trigger,
    )


def place_in_bars(task: TaskSpec, observation: np.ndarray) -> np.ndarray | None:
    """Which bar belongs to each state of an episode."""
    return np.argmax(observation, axis=1) if isinstance(task, Chain) else None
