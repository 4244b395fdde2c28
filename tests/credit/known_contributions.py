"""Episodes whose contributions are known, and learners of them."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.credit.data.episode import Episode
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.episodic.method import Episodic
from synthetic_returns.credit.episodic.model import EpisodicModel
from synthetic_returns.credit.method import CreditMethod
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.nn.settings import TorsoSettings

KINDS = 4
TRUE = np.array([1.0, 0.0, -1.0, 0.5], np.float32)  # what a state of each kind contributes
LENGTH = 8
SMALL = Episodic(
    encoder=TorsoSettings(sizes=(32,)),
    head_sizes=(32,),
    replay=Replay(slots=256, batch_size=32, updates_per_episode=0.5),
    learning_rate=3e-3,
    horizon=1,
)


def with_replay(method: Any = SMALL, **settings: Any) -> Any:
    """The method with another replay."""
    return dataclasses.replace(method, replay=dataclasses.replace(method.replay, **settings))


def episode_of(observation: np.ndarray, reward: Any) -> Episode:
    """An episode that ends in a state of its own; its observations are those that were left."""
    terminal = np.full_like(observation[:1], 7)
    reward = np.asarray(reward, np.float32)
    ends = np.ones_like(reward)
    ends[-1:] = 0
    return Episode(np.concatenate([observation, terminal]), reward, ends)


def make_episodes(seed, number, contribution=TRUE, noise=0.0, scale=1.0):
    """States of random kinds; the last step pays what all the states before it contributed."""
    rng = np.random.default_rng(seed)
    episodes = []
    for _ in range(number):
        kinds = rng.integers(KINDS, size=LENGTH)
        reward = np.zeros(LENGTH, np.float32)
        reward[-1] = contribution[kinds[:-1]].sum() + noise * rng.normal()
        episodes.append(episode_of(np.eye(KINDS, dtype=np.float32)[kinds], scale * reward))
    return episodes


def make_learner(
    method: CreditMethod = SMALL,
    seed: int = 0,
    shape: tuple[int, ...] = (KINDS,),
    steps: int = LENGTH,
    view: View | None = None,
    dtype: Any = np.float32,
    **settings: Any,
) -> CreditDriver:
    view = view or View()
    spec = EpisodeSpec.seen(view, shape, np.dtype(dtype), steps, num_actions=2)
    settings = {"max_episode_steps": steps, "num_envs": 1} | settings
    return CreditDriver(method, spec, view, key=jax.random.key(seed), **settings)


def trained(method=SMALL, batches=60, **problem):
    learner = make_learner(method)
    for batch in range(batches):
        learner.learn(make_episodes(batch, 16, **problem))
    return learner


def contributions(learner):
    """What each kind of state contributes, relative to their mean: that is all the data tell."""
    c = np.asarray(learner.method.of_states(learner.state, jnp.eye(KINDS)))
    return c - c.mean()


def make_model(**choices):
    settings = dataclasses.replace(SMALL, **choices)
    spec = EpisodeSpec((KINDS,), np.dtype(np.float32), LENGTH)
    model = EpisodicModel(spec, settings, key=jax.random.key(1))
    return jax.tree.map(lambda x: 2 * x if eqx.is_array(x) else x, model)


def predict(model, observation, valid):
    return eqx.filter_jit(lambda m: m.predict(observation, valid, jnp.ones(())))(model)
