"""Losses by hand, their masks and what is detached; the averages they are made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.agents.impala.losses import (
    action_prior_loss,
    all_actions_loss,
    entropy_loss,
    log_prob,
    policy_gradient_loss,
    value_loss,
)
from synthetic_returns.utils.averages import explained_variance, masked_mean, masked_variance

VALID = jnp.array([[True, True], [False, True]])
HALF_AND_HALF = np.log(2)


def test_log_prob_is_that_of_the_action_taken():
    logits = jnp.log(jnp.array([[[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]]])) + 7
    got = log_prob(logits, jnp.array([[2, 1]]))
    np.testing.assert_allclose(got, np.log([[0.5, 0.8]]), rtol=1e-5)


def test_policy_gradient_by_hand():
    """-(1 * 2 + 3 * -1 + 5 * 4) / 3: the masked transition counts neither above nor below."""
    log_pi = jnp.array([[1.0, 3.0], [99.0, 5.0]])
    advantage = jnp.array([[2.0, -1.0], [99.0, 4.0]])
    assert policy_gradient_loss(log_pi, advantage, VALID) == pytest.approx(-19 / 3)
    grads = jax.grad(policy_gradient_loss, (0, 1))(log_pi, advantage, VALID)
    np.testing.assert_allclose(grads[0], [[-2 / 3, 1 / 3], [0, -4 / 3]], rtol=1e-6)
    assert not np.any(grads[1])


def test_the_gain_over_all_actions_by_hand():
    """Of the probabilities 3/4 and 1/4 and the advantages 2 and -1 the mean is 5/4.

    The derivative by a logit is pi (mean - advantage), here -9/16 and 9/16; of three transitions
    a third of it counts.
    """
    logits = jnp.log(jnp.array([[[3.0, 1.0], [1.0, 1.0]], [[7.0, 1.0], [1.0, 1.0]]]))
    advantage = jnp.array([[[2.0, -1.0], [4.0, 4.0]], [[99.0, -99.0], [-1.0, 1.0]]])
    assert all_actions_loss(logits, advantage, VALID) == pytest.approx(-(5 / 4 + 4 + 0) / 3)
    grads = jax.grad(all_actions_loss, (0, 1))(logits, advantage, VALID)
    by_hand = [[[-9 / 16, 9 / 16], [0, 0]], [[0, 0], [1 / 2, -1 / 2]]]
    np.testing.assert_allclose(grads[0], np.array(by_hand) / 3, atol=1e-6)
    assert not np.any(grads[1])


def test_value_loss_by_hand():
    """Half of ((1 - 2)^2 + (3 - 3)^2 + (5 - 1)^2) / 3, and the derivative (v - target) / 3."""
    v = jnp.array([[1.0, 3.0], [99.0, 5.0]])
    target = jnp.array([[2.0, 3.0], [0.0, 1.0]])
    assert value_loss(v, target, VALID) == pytest.approx(17 / 6)
    grads = jax.grad(value_loss, (0, 1))(v, target, VALID)
    np.testing.assert_allclose(grads[0], [[-1 / 3, 0], [0, 4 / 3]], rtol=1e-6)
    assert not np.any(grads[1])


def test_entropy_by_hand():
    """log 2 for two equal actions, 0 for a certain one; the masked step is neither."""
    logits = jnp.array([[[5.0, 5.0], [50.0, -50.0]], [[3.0, 1.0], [0.0, 0.0]]])
    assert entropy_loss(logits, VALID) == pytest.approx(-2 / 3 * HALF_AND_HALF)
    gradient = jax.grad(entropy_loss)(logits, VALID)
    assert not np.any(gradient[1, 0])


def test_the_action_prior_costs_nothing():
    log_prior = jnp.log(jnp.array([0.8, 0.1, 0.1]))
    valid = jnp.array([[True]])

    def divergence(logits):
        return entropy_loss(logits, valid) + action_prior_loss(logits, log_prior, valid)

    at_prior = log_prior[None, None] + 3.0
    assert divergence(at_prior) == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(jax.grad(divergence)(at_prior), 0, atol=1e-6)
    # All alike: the mean of log((1/3) / prior), by hand.
    by_hand = (np.log(1 / 2.4) + 2 * np.log(1 / 0.3)) / 3
    assert divergence(jnp.zeros((1, 1, 3))) == pytest.approx(by_hand, abs=1e-5)


def test_minimising_the_entropy_loss_makes_actions_equal():
    logits = jnp.array([[[1.0, -1.0]]])
    gradient = jax.grad(entropy_loss)(logits, jnp.array([[True]]))
    assert gradient[0, 0, 0] > 0 > gradient[0, 0, 1]


def test_averages_without_entries_are_zero():
    x, nothing = jnp.array([1.0, jnp.nan]), jnp.array([False, False])
    assert masked_mean(x, nothing) == 0
    assert masked_variance(x, nothing) == 0
    assert explained_variance(x, x, nothing) == 0


def test_averages_equal_numpy():
    rng = np.random.default_rng(0)
    target = rng.normal(size=(6, 4)).astype(np.float32)
    guess = (target + rng.normal(size=(6, 4))).astype(np.float32)
    valid = rng.random((6, 4)) < 0.6
    arrays = jnp.asarray(target), jnp.asarray(guess), jnp.asarray(valid)
    assert masked_mean(arrays[0], arrays[2]) == pytest.approx(target[valid].mean(), abs=1e-6)
    assert masked_variance(arrays[0], arrays[2]) == pytest.approx(target[valid].var(), rel=1e-5)
    want = 1 - (target - guess)[valid].var() / target[valid].var()
    assert explained_variance(*arrays) == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize(("guess", "explained"), [([3.0, 7.0], 1), ([0.0, 0.0], 0), ([4.0, 0], -3)])
def test_explained_variance_by_hand(guess, explained):
    """Of the targets 2 and 6: offsets do not count, no guess explains 0, the wrong way is < 0."""
    valid = jnp.array([True, True])
    got = explained_variance(jnp.array([2.0, 6.0]), jnp.array(guess), valid)
    assert got == pytest.approx(explained)
