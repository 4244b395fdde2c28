"""How credit compares with the exact one: correlation, bias and variance."""

import dataclasses

import numpy as np

from synthetic_returns.experiments.exact.truth import Truth

__all__ = ["Quality", "quality"]

LEAST = 1e-9  # a standard deviation that is more than rounding


@dataclasses.dataclass(frozen=True)
class Quality:
    """How a method's credit compares with the exact one.

    A situation is a hidden state and an action. The mean square error of the credit is the square
    of the bias plus the variance.

    Attributes:
      correlation: of both, over all steps of all episodes.
      correlation_of_means: of the mean credit in the same situation with the exact one, over all
        steps: without the luck of single episodes.
      bias: root mean square, over steps, of how far the mean credit in the same situation is from
        the exact one.
      variance: mean, over steps, of the variance of the credit in the same situation.
      spread: standard deviation of the credit.
      exact: root mean square of the exact credit, to compare these with.
    """

    correlation: float
    correlation_of_means: float
    bias: float
    variance: float
    spread: float
    exact: float


def quality(truth: Truth, states: np.ndarray, action: np.ndarray, credit: np.ndarray) -> Quality:
    """Compares the credit of steps with the exact one.

    Args:
      truth: the exact credit under the policy that played.
      states: the numbers of the hidden states of N steps, ``[N]``.
      action: what was done there.
      credit: advantages of all actions ``[N, A]``, or what was paid for each step ``[N]``, which is
        compared with the advantage of the action taken.
    """
    if not len(states):
        raise ValueError("there are no steps to compare; play at least one episode.")
    num_actions = truth.policy.shape[1]
    every = states[:, None] * num_actions + np.arange(num_actions)
    if credit.ndim == 1:
        every = every[np.arange(len(action)), action]
    x, e = np.asarray(credit, np.float64).ravel(), truth.advantage.ravel()[every.ravel()]
    _, cell = np.unique(every.ravel(), return_inverse=True)
    number = np.bincount(cell)
    mean = np.bincount(cell, x) / number
    spread = np.bincount(cell, np.square(x - mean[cell])) / number
    return Quality(
        correlation=_correlation(x, e),
        correlation_of_means=_correlation(mean[cell], e),
        bias=float(np.sqrt(np.mean(np.square(mean[cell] - e)))),
        variance=float(np.mean(spread[cell])),
        spread=float(x.std()),
        exact=float(np.sqrt(np.mean(np.square(e)))),
    )


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    """0 if one of them does not vary: it says nothing about the other."""
    varies = x.std() > LEAST and y.std() > LEAST
    return float(np.corrcoef(x, y)[0, 1]) if varies else 0.0
