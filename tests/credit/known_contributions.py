"""Episodes whose contributions are known, and learners of them."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.credit.episodes import Episode
from synthetic_returns.credit.episodic.learner import EpisodicLearner
from synthetic_returns.credit.episodic.model import EpisodicModel
from synthetic_returns.credit.episodic.options import EpisodicOptions

KINDS = 4
TRUE = np.array([1.0, 0.0, -1.0, 0.5], np.float32)  # what a state of each kind contributes
LENGTH = 8
SMALL = EpisodicOptions(
    encoder_sizes=(32,),
    head_sizes=(32,),
    slots=256,
    batch_size=32,
    updates_per_episode=0.5,
    learning_rate=3e-3,
    horizon=1,
)


def make_episodes(seed, number, contribution=TRUE, noise=0.0, scale=1.0):
    """States of random kinds; the last step pays what all the states before it contributed."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        kinds = rng.integers(KINDS, size=LENGTH)
        reward = np.zeros(LENGTH, np.float32)
        reward[-1] = contribution[kinds[:-1]].sum() + noise * rng.normal()
        yield Episode(np.eye(KINDS, dtype=np.float32)[kinds], scale * reward)


def make_learner(options=SMALL, seed=0):
    return EpisodicLearner((KINDS,), LENGTH, options, key=jax.random.key(seed))


def trained(options=SMALL, batches=60, **problem):
    learner = make_learner(options)
    for batch in range(batches):
        learner.learn(make_episodes(batch, 16, **problem))
    return learner


def contributions(learner):
    """What each kind of state contributes, relative to their mean: that is all the data tell."""
    c = np.asarray(learner.contributions(jnp.eye(KINDS)))
    return c - c.mean()


def make_model(**choices):
    options = dataclasses.replace(SMALL, **choices)
    model = EpisodicModel((KINDS,), LENGTH, options, key=jax.random.key(1))
    return jax.tree.map(lambda x: 2 * x if eqx.is_array(x) else x, model)


def predict(model, observation, valid):
    return eqx.filter_jit(lambda m: m.predict(observation, valid, jnp.ones(())))(model)
