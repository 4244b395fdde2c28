"""Bias, variance and correlation of credit that is wrong in known ways."""

import numpy as np
import pytest

from synthetic_returns.envs.linear_key_to_door import LinearKeyToDoor
from synthetic_returns.experiments.exact.quality import quality
from synthetic_returns.experiments.exact.truth import state_graph

GRAPH = state_graph(LinearKeyToDoor())
TRUTH = GRAPH.solve(np.random.default_rng(0).dirichlet(np.full(4, 3.0), len(GRAPH.reward)))
PLAYED = TRUTH.play(300)
STATES = np.concatenate([one.states for one in PLAYED])
ACTION = np.concatenate([np.asarray(one.episode.action) for one in PLAYED])
EXACT = TRUTH.advantage[STATES]


def test_what_is_right_has_neither_bias_nor_variance():
    for credit in (EXACT, EXACT[np.arange(len(STATES)), ACTION]):
        found = quality(TRUTH, STATES, ACTION, credit)
        assert (found.correlation, found.correlation_of_means) == pytest.approx((1, 1))
        assert (found.bias, found.variance) == pytest.approx((0, 0), abs=1e-9)
        assert found.spread == pytest.approx(credit.std())
        assert found.exact == pytest.approx(np.sqrt(np.mean(credit**2)))


def test_a_constant_is_bias_and_noise_is_variance():
    shifted = quality(TRUTH, STATES, ACTION, EXACT + 0.3)
    assert (shifted.bias, shifted.variance) == pytest.approx((0.3, 0), abs=1e-6)
    assert shifted.correlation == pytest.approx(1)
    noise = np.random.default_rng(0).normal(size=EXACT.shape)
    noisy = quality(TRUTH, STATES, ACTION, EXACT + noise)
    assert noisy.variance == pytest.approx(1, abs=0.1)
    assert noisy.bias < 0.25
    assert noisy.correlation < 0.3 < 0.6 < noisy.correlation_of_means


def test_paying_nothing_is_all_bias():
    found = quality(TRUTH, STATES, ACTION, np.zeros(len(STATES)))
    assert found.bias == pytest.approx(found.exact)
    assert (found.variance, found.correlation, found.correlation_of_means) == (0, 0, 0)


def test_nothing_to_compare_is_refused():
    none = np.zeros(0, int)
    with pytest.raises(ValueError, match="no steps to compare"):
        quality(TRUTH, none, none, np.zeros((0, 4)))
