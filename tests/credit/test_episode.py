"""Whole episodes are the same as a batch and as a segment."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from synthetic_returns.credit.data.episode import EpisodeBatch, Segment, whole_episodes


def test_whole_episodes_survive_being_a_segment():
    rng, length = np.random.default_rng(0), np.array([4, 2, 1], np.int32)
    steps = np.arange(4)[:, None] < length[None]

    def of_steps(*shape):
        x = rng.normal(size=(4, 3, *shape))
        return jnp.asarray(np.where(steps.reshape(4, 3, *([1] * len(shape))), x, 0), jnp.float32)

    batch = EpisodeBatch(
        observation=jnp.asarray(rng.normal(size=(5, 3, 2)), jnp.float32),
        reward=of_steps(),
        discount=of_steps(),
        length=jnp.asarray(length),
        action=of_steps().astype(jnp.int32),
        log_probs=of_steps(2),
        value=of_steps(),
        contribution=of_steps(),
    )
    segment = Segment.of_episodes(**vars(batch))
    np.testing.assert_array_equal(np.flatnonzero(np.asarray(segment.first).ravel()), [0, 1, 2])
    np.testing.assert_array_equal(segment.valid, steps)
    again = whole_episodes(segment)
    for field in dataclasses.fields(EpisodeBatch):
        want = getattr(batch, field.name)
        np.testing.assert_array_equal(getattr(again, field.name), want, field.name)
