"""Episodes in which the advantage of every action is known."""

import dataclasses

import numpy as np

from synthetic_returns.credit.data.episode import Episode
from tests.credit.known_contributions import KINDS, LENGTH, episode_of

WORTH = (1.0, 0.0, -1.0, 0.5)  # of the second action, in a state of each kind
SECOND = np.array([0.5, 0.3, 0.6, 0.4])  # how often it is taken there


def make_decisions(seed, number, worth=WORTH, noise=0.0, scale=1.0) -> list[Episode]:
    """States of random kinds, two actions; the last step pays what the second ones were worth."""
    rng = np.random.default_rng(seed)
    episodes = []
    for _ in range(number):
        kinds = rng.integers(KINDS, size=LENGTH)
        p = SECOND[kinds]
        action = (rng.random(LENGTH) < p).astype(np.int32)
        reward = np.zeros(LENGTH, np.float32)
        reward[-1] = (np.array(worth)[kinds] * action)[:-1].sum() + noise * rng.normal()
        episode = episode_of(np.eye(KINDS, dtype=np.float32)[kinds], scale * reward)
        log_probs = np.log(np.stack([1 - p, p], axis=1)).astype(np.float32)
        value = np.zeros(LENGTH, np.float32)
        episodes.append(
            dataclasses.replace(episode, action=action, log_probs=log_probs, value=value)
        )
    return episodes


def advantages_of(worth) -> np.ndarray:
    """``Q(s, a) - V(s)``: what an action adds to what the policy does anyway."""
    worth = np.array(worth)
    return np.stack([-SECOND * worth, (1 - SECOND) * worth], axis=1)
