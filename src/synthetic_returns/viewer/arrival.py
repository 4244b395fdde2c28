"""Terms over the steps of an episode, where everything of a step is about arriving in its state."""

import numpy as np

from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.view import View

__all__ = ["credit_on_arrival", "on_arrival", "reward_over", "values_on_arrival"]


def on_arrival(about_leaving: np.ndarray) -> np.ndarray:
    """Moves what each state says about its next reward to where that reward arrives."""
    values = np.asarray(about_leaving, np.float64)
    return np.concatenate([np.full_like(values[:1], np.nan), values[:-1]])


def values_on_arrival(term: Term) -> np.ndarray:
    """What a term says, at the step whose reward it is about."""
    values = np.asarray(term.values, np.float64)
    return on_arrival(values) if term.about == "leaving" else values


def credit_on_arrival(
    explanation: Explanation, reference: np.ndarray | None = None
) -> np.ndarray | None:
    """The credit as one number for each state, at the step that it is about; None without any.

    Args:
      explanation: of one episode.
      reference: the credit of other episodes at the same steps, which it is compared with. The
        terminal state earns nothing, and is compared with nothing.
    """
    values = explanation.per_state()
    if values is None or explanation.credit is None:
        return None
    if reference is not None:
        values = np.append((values - reference)[:-1], values[-1])
    term = explanation.terms[explanation.credit]
    # Of pairs, the sum is about the state that contributes, not about those that it leads to.
    shifted = term.about == "leaving" and term.kind != "pairs"
    return on_arrival(values) if shifted else np.asarray(values, np.float64)


def reward_over(reward: np.ndarray, steps: int, stride: int = 1) -> np.ndarray:
    """The sum of ``steps`` rewards from each step on, as far as the episode goes.

    It is what a line about leaving with these ``steps`` and this ``stride`` predicts, at the same
    place as ``values_on_arrival`` puts the prediction.

    Args:
      reward: the reward of arriving in each state.
      steps: how many rewards are summed up.
      stride: how many states share the sum of the first of them.
    """
    states = np.arange(len(reward))
    _, is_kept = View(stride=stride).place(states)
    start = np.maximum.accumulate(np.where(is_kept, states, 0))  # where it was predicted
    before = np.concatenate([[0.0], np.cumsum(reward, dtype=np.float64)])
    end = np.minimum(start + steps, len(reward) - 1)
    return on_arrival(before[end + 1] - before[start + 1])
