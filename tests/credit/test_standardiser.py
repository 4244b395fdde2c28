"""Observations of unknown size are standardised by the states of all episodes so far."""

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import synthetic_returns as sr
from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.credit.standardiser import Standardiser, with_statistics_of
from tests.wrappers.small import METHOD

SIZE = 3


def draw_batch(rng, length, mean):
    """Episodes side by side; what lies behind their ends is no state of them."""
    steps, number = max(length), len(length)
    observation = rng.normal(mean, [1.0, 0.1, 50.0], (steps + 1, number, SIZE)).astype(np.float32)
    for column, end in enumerate(length):
        observation[end:, column] = 1e6
    return EpisodeBatch(
        observation=jnp.asarray(observation),
        reward=jnp.zeros((steps, number)),
        discount=jnp.ones((steps, number)),
        length=jnp.asarray(length, jnp.int32),
    )


def states_of(batch):
    return np.concatenate(
        [np.asarray(batch.source[:n, i], np.float64) for i, n in enumerate(batch.length)]
    )


@pytest.mark.parametrize("number", [1, 4])
def test_mean_and_variance_are_those_of_all_states_so_far(number):
    rng = np.random.default_rng(0)
    batches = [draw_batch(rng, (5, 9, 1), mean) for mean in (0.0, 3.0, -20.0, 4.0)[:number]]
    known = Standardiser.init((SIZE,))
    for batch in batches:
        known = known.with_episodes(batch)
    states = np.concatenate([states_of(batch) for batch in batches])
    np.testing.assert_allclose(known.mean, states.mean(axis=0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(known.variance, states.var(axis=0), rtol=1e-4)
    assert known.count == len(states)
    standard = np.asarray(known(jnp.asarray(states, jnp.float32)))
    np.testing.assert_allclose(standard.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(standard.std(axis=0), 1, rtol=1e-2)


def test_before_the_first_episode_nothing_changes():
    x = jnp.array([[1.0, -2.0, 0.5]])
    np.testing.assert_array_equal(Standardiser.init((SIZE,))(x), x)


def test_numbers_that_never_change_and_numbers_out_of_all_proportion():
    known = Standardiser(
        count=jnp.array(10.0), mean=jnp.array([7.0, 0.0]), variance=jnp.array([0.0, 1.0])
    )
    np.testing.assert_array_equal(known(jnp.array([7.0, 1e9])), [0, 10])


def test_statistics_are_no_parameters():
    known = Standardiser.init((SIZE,)).with_episodes(
        draw_batch(np.random.default_rng(0), (4,), 1.0)
    )
    gradient = eqx.filter_grad(lambda one: jnp.sum(one(jnp.ones(SIZE))))(known)
    assert not any(np.any(x) for x in jax.tree.leaves(gradient))


def test_all_standardisers_of_a_method_learn_the_same():
    batch = draw_batch(np.random.default_rng(0), (4, 6), 2.0)
    state = {"model": Standardiser.init((SIZE,)), "average": [Standardiser.init((SIZE,))], "n": 1}
    after = with_statistics_of(batch, state)
    want = Standardiser.init((SIZE,)).with_episodes(batch)
    for one in (after["model"], after["average"][0]):
        np.testing.assert_array_equal(one.mean, want.mean)
    assert after["n"] == 1


class Metres(gymnasium.Env):
    """A walk whose position is told in micrometres; where it ends is paid at the end."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = spaces.Discrete(2)
    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, unit=1e-6):
        self.unit = unit

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.place = 0, 0
        return np.zeros(1), {}

    def step(self, action):
        self.time += 1
        self.place += 2 * int(action) - 1
        over = self.time == 6
        return np.array([self.place / self.unit]), float(over) * self.place, over, False, {}


@pytest.mark.parametrize("method", [METHOD, sr.Advance(), sr.Rudder()], ids=lambda m: m.name)
def test_the_unit_of_observations_makes_no_difference(method):
    """With each wrapped method: metres and micrometres earn the same credit."""

    def paid(unit):
        envs = gymnasium.vector.SyncVectorEnv([lambda: Metres(unit)] * 4)
        envs = sr.SyntheticReturnsVectorWrapper(envs, method=method, max_episode_steps=6)
        envs.reset(seed=0)
        rng = np.random.default_rng(0)
        return np.array([envs.step(rng.integers(2, size=4))[1] for _ in range(140)])

    small, large = paid(1e-6), paid(1.0)
    assert np.any(small != 0)
    # Where a gradient is nothing but rounding, Adam makes steps of it.
    np.testing.assert_allclose(small, large, rtol=0.1, atol=0.2)
