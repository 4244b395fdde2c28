"""Tasks with so few states that the credit of every one of them can be shown."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from synthetic_returns.credit.explainer import Explainer
from synthetic_returns.envs.spec import TaskSpec

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


def state_bars(task: TaskSpec, explainer: Explainer | None) -> StateBars | None:
    """The bars of a task that has few states; None for any other and without credit."""
    states = task.few_states
    if states is None or explainer is None:
        return None
    return StateBars(
        labels=states.labels,
        credit=np.asarray(explainer.of_states(jnp.asarray(states.observations))),
        decisive=states.decisive,
    )


def place_in_bars(task: TaskSpec, observation: np.ndarray) -> np.ndarray | None:
    """Which bar belongs to each state of an episode."""
    states = task.few_states
    return None if states is None else states.indices(observation)
