"""Episodes that a collector might hand over, and what each of their steps ought to be paid."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from synthetic_returns.credit.advance.method import Advance
from synthetic_returns.credit.data.episode import Segment
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.wrappers.pieces import Piece
from synthetic_returns.wrappers.stream import StreamCredit

ADVANCE = Advance(
    encoder=TorsoSettings(sizes=(16,)),
    head_sizes=(16,),
    replay=Replay(slots=32, batch_size=8, updates_per_episode=1.0),
    learning_rate=3e-2,  # so that credit is far from 0 soon
)
ACTIONS = 2


def made_up_episode(number: int, steps: int, size: int = 4, terminated: bool = True) -> Piece:
    """A whole episode; its return depends on what happened."""
    rng = np.random.default_rng(number)
    states = rng.normal(size=(steps + 1, size)).astype(np.float32)
    reward = np.zeros(steps, np.float32)
    reward[-1] = states[:-1, 0].sum()
    action = rng.integers(ACTIONS, size=steps)
    return Piece(states[:-1], states[1:], action, reward, ended=True, terminated=terminated)


def part(episode: Piece, start: int, stop: int) -> Piece:
    """Some steps of an episode."""
    over = stop == len(episode)
    arrays = {
        name: getattr(episode, name)[start:stop]
        for name in ("observation", "arrived", "action", "reward")
    }
    ended, terminated = over and episode.ended, over and episode.terminated
    return dataclasses.replace(episode, **arrays, ended=ended, terminated=terminated)


def wanted(credit: StreamCredit, episode: Piece, held: int = 0) -> np.ndarray:
    """What the steps of an episode are paid: followed one by one, and settled at the end.

    Args:
      credit: the method at work.
      episode: all of it.
      held: the first step that is still known of; the end settles from there on.
    """
    driver, paid, advanced = credit.driver, [], 0.0
    for time in range(len(episode)):
        action: Any = episode.action
        segment = Segment(
            observation=np.stack([episode.observation[time], episode.arrived[time]])[:, None],
            first=np.array([[time == 0], [False]]),
            last=np.array([[False], [False]]),
            reward=np.zeros((1, 1), np.float32),
            discount=np.ones((1, 1), np.float32),
            action=np.asarray(action[time]).reshape(1, 1),
        )
        carry = driver.method.resume(driver.state, jnp.array([time], jnp.int32))
        assignment, _ = driver.method.assign(driver.state, carry, segment)
        earned = float(np.asarray(assignment.shared_out(driver.view.stride).reward)[0, 0])
        if episode.ended and time == len(episode) - 1:
            earned = -advanced if driver.method.conserves else 0.0
        advanced += earned if time >= held else 0.0
        paid.append(credit.mix.alpha * earned + credit.mix.beta * float(episode.reward[time]))
    return np.array(paid)
