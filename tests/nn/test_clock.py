"""The clock: the time of the episode, across its starts and wherever unrolls are cut."""

import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.nn.clock import ClockCore, clock_size, time_features

LONGEST = 9
FIRST = np.array([[1, 0, 0, 1, 0, 0, 0, 1], [0, 0, 1, 1, 0, 0, 0, 0]], bool).T
TIME = np.array([[0, 1, 2, 0, 1, 2, 3, 0], [0, 1, 0, 0, 1, 2, 3, 4]]).T


@pytest.mark.parametrize("length", [1, 3, 8])
def test_time_is_counted_from_the_start_of_the_episode(length):
    core, x = ClockCore(LONGEST), jnp.ones((8, 2, 3))
    state, parts = core.initial_state(2), []
    for begin in range(0, 8, length):
        steps = slice(begin, begin + length)
        part, state = core(x[steps], jnp.asarray(FIRST[steps]), state)
        parts.append(part)
    got = jnp.concatenate(parts)
    assert got.shape == (8, 2, 3 + clock_size(LONGEST))
    np.testing.assert_array_equal(got[..., :3], x)
    want = time_features(jnp.asarray(TIME, jnp.int32), LONGEST)
    np.testing.assert_allclose(got[..., 3:], want, atol=1e-6)


def test_every_time_of_an_episode_looks_different():
    features = np.asarray(time_features(jnp.arange(LONGEST + 1, dtype=jnp.int32), LONGEST))
    apart = np.abs(features[:, None] - features[None]).max(axis=-1) + np.eye(LONGEST + 1)
    assert apart.min() > 0.1
