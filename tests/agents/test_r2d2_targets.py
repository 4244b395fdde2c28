"""Value rescaling, targets of double Q-learning, priorities and the ladder, in plain float64."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.agents.r2d2.exploration import epsilon_ladder, least_epsilon
from synthetic_returns.agents.r2d2.rescaling import rescaled, unscaled
from synthetic_returns.agents.r2d2.targets import (
    double_q_targets,
    n_step_returns,
    sequence_priorities,
)
from synthetic_returns.nn.q_network import epsilon_greedy

EPSILON = 1e-3
ACTIONS = 3


def h(x):
    return math.copysign(math.sqrt(abs(x) + 1) - 1, x) + EPSILON * x


def h_inverse(x):
    root = (math.sqrt(1 + 4 * EPSILON * (abs(x) + 1 + EPSILON)) - 1) / (2 * EPSILON)
    return math.copysign(root**2 - 1, x)


X = np.concatenate([-np.logspace(4, -4, 30), [0.0], np.logspace(-4, 4, 30)])


def test_rescaling_is_that_of_the_paper():
    want = [h(x) for x in X]
    np.testing.assert_allclose(rescaled(jnp.asarray(X, jnp.float32)), want, rtol=2e-6)
    want = [h_inverse(x) for x in X]
    found = unscaled(jnp.asarray(X, jnp.float32))
    # 1 is taken from a number close to it: what is left of a small one is as exact as that.
    np.testing.assert_allclose(found, want, rtol=2e-6, atol=5e-7)


def test_the_inverse_inverts():
    x = jnp.asarray(X, jnp.float32)
    np.testing.assert_allclose(unscaled(rescaled(x)), X, rtol=1e-5, atol=5e-7)
    np.testing.assert_allclose(rescaled(unscaled(x)), X, rtol=1e-5, atol=5e-7)


def random_sequences(time, batch, seed=0):
    """Values, rewards and discounts, with ends, cut-offs and blocked backups in them."""
    rng = np.random.default_rng(seed)
    last = rng.random((time, batch)) < 0.3
    discount = np.where(last & (rng.random((time, batch)) < 0.5), 0.0, 0.9)
    discount = np.where(rng.random((time, batch)) < 0.1, 0.0, discount)
    q, q_target = rng.normal(size=(2, time, batch, ACTIONS)) * 3
    return q, q_target, rng.normal(size=(time, batch)) * 5, discount, last


def on_device(arrays: Sequence[np.ndarray]) -> tuple[Any, Any, Any, Any, Any]:
    *numbers, last = arrays
    q, q_target, r, discount = (jnp.asarray(x, jnp.float32) for x in numbers)
    return q, q_target, r, discount, jnp.asarray(last)


def slow_targets(q, q_target, r, discount, last, n, rescale):
    """As in the paper: every target on its own, from the rewards and the state it ends in."""
    time, batch = r.shape
    targets = np.zeros((time, batch))
    for b in range(batch):
        for t in range(time):
            total, weight, end = 0.0, 1.0, t
            for k in range(t, min(t + n, time)):
                total += weight * r[k, b]
                weight *= discount[k, b]
                end = k
                if last[k, b]:
                    break
            value = q_target[end, b][int(np.argmax(q[end, b]))]
            total += weight * (h_inverse(value) if rescale else value)
            targets[t, b] = h(total) if rescale else total
    return targets


@pytest.mark.parametrize("rescale", [True, False])
@pytest.mark.parametrize("n", [1, 3, 9])
@pytest.mark.parametrize(("time", "batch"), [(1, 1), (7, 5)])
def test_targets_are_those_of_the_paper(time, batch, n, rescale):
    slow = random_sequences(time, batch)
    found = double_q_targets(*on_device(slow), n=n, rescale=rescale)
    want = slow_targets(*slow, n, rescale)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


def test_a_golden_target_over_a_termination_and_a_cut_off():
    """Three steps: the first episode terminates (discount 0), the second is cut off after two."""
    r = jnp.asarray([[1.0], [10.0], [100.0], [1000.0]])
    discount = jnp.asarray([[0.5], [0.0], [0.5], [0.5]])
    last = jnp.asarray([[False], [True], [False], [True]])
    v = jnp.asarray([[2.0], [3.0], [4.0], [5.0]])
    found = n_step_returns(r, discount, last, v, 3)
    want = [1 + 0.5 * 10, 10, 100 + 0.5 * (1000 + 0.5 * 5), 1000 + 0.5 * 5]
    np.testing.assert_allclose(found[:, 0], want)


def test_what_the_target_network_thinks_of_other_actions_does_not_matter():
    q, q_target, r, discount, last = on_device(random_sequences(5, 4))
    best = jax.nn.one_hot(jnp.argmax(q, axis=-1), ACTIONS)
    other = q_target + 100 * (1 - best)
    one, two = (
        double_q_targets(q, x, r, discount, last, n=2, rescale=True) for x in (q_target, other)
    )
    np.testing.assert_array_equal(one, two)


def test_priorities_mix_the_largest_and_the_mean_error():
    error = np.random.default_rng(0).normal(size=(6, 4))
    valid = np.random.default_rng(1).random((6, 4)) < 0.7
    valid[:, 3] = False
    found = sequence_priorities(jnp.asarray(error, jnp.float32), jnp.asarray(valid), 0.9)
    for b in range(3):
        sizes = [abs(error[t, b]) for t in range(6) if valid[t, b]]
        want = 0.9 * max(sizes) + 0.1 * sum(sizes) / len(sizes)
        np.testing.assert_allclose(found[b], want, rtol=1e-6)
    assert found[3] == 0


def test_every_environment_has_its_rung():
    ladder = epsilon_ladder(0.4, 7.0, 5)
    np.testing.assert_allclose(ladder, [0.4 ** (1 + 7 * i / 4) for i in range(5)], rtol=1e-5)
    assert ladder[-1] == pytest.approx(least_epsilon(0.4, 7.0), rel=1e-5)
    np.testing.assert_allclose(epsilon_ladder(0.4, 7.0, 1), [0.4], rtol=1e-6)


def test_epsilon_greedy_gives_the_best_action_the_rest():
    q = jnp.asarray([[0.0, 2.0, 1.0], [5.0, 2.0, 1.0]])
    found = epsilon_greedy(q, jnp.asarray([0.3, 0.0]))
    np.testing.assert_allclose(found, [[0.1, 0.8, 0.1], [1, 0, 0]], atol=1e-6)
