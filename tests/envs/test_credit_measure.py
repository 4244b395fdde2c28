import numpy as np

from synthetic_returns.envs.credit_measure import peak_share, separation


def test_separation_is_the_chance_that_a_good_one_is_larger():
    assert separation(np.array([1.0, 3.0]), np.array([0.0, 2.0])) == 0.75
    assert separation(np.array([1.0]), np.array([1.0])) == 0.5
    assert np.isnan(separation(np.array([1.0]), np.zeros(0)))


def test_an_episode_without_the_event_counts_against_the_share():
    assert peak_share(np.array([[0, 1.0], [1, 0]]), np.array([[0, 0], [1.0, 0]])) == 0.5
