"""Interquartile means, probabilities of improvement, profiles: against hand and against rliable."""

import numpy as np
import pytest

from synthetic_returns.utils.scores import (
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
    stratified_interval,
)


def scores(*tasks):
    return [np.array(task, float) for task in tasks]


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([[1, 2, 3, 4, 5, 6, 7, 100]], (3 + 4 + 5 + 6) / 4),
        ([[9, 1, 2, 3, -5]], (1 + 2 + 3) / 3),  # 1.25 runs at each end: one
        ([[1, 2, 6]], 3),  # 0.75 at each end: none
        ([[0, 0, 1, 1], [0.5, 0.5, 0.5, 1]], (0.5 + 0.5 + 0.5 + 1) / 4),  # of all runs together
        ([[7]], 7),
    ],
)
def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end(tasks, expected):
    assert interquartile_mean(scores(*tasks)) == pytest.approx(expected)


def test_the_interquartile_mean_is_that_of_a_sorted_loop():
    """float64 loops, as one would do it by hand."""
    rng = np.random.default_rng(0)
    for runs in (1, 2, 3, 4, 5, 10, 13):
        tasks = [rng.normal(size=runs) for _ in range(3)]
        ordered = sorted(float(x) for task in tasks for x in task)
        cut = len(ordered) // 4
        kept = ordered[cut : len(ordered) - cut]
        assert interquartile_mean(tasks) == pytest.approx(sum(kept) / len(kept))


def test_the_probability_of_improvement_counts_pairs_and_halves_of_ties():
    x, y = scores([1, 2, 3]), scores([0, 2])
    # 1 > 0; 2 > 0, 2 = 2; 3 > 0, 3 > 2: 4 wins and a tie of 6 pairs.
    assert probability_of_improvement(x, y) == pytest.approx(4.5 / 6)
    assert probability_of_improvement(y, x) == pytest.approx(1.5 / 6)
    assert probability_of_improvement(x, x) == 0.5
    # The mean over tasks, however many runs each has.
    both = probability_of_improvement([*x, np.array([1.0])], [*y, np.array([0.0])])
    assert both == pytest.approx((4.5 / 6 + 1) / 2)


def test_a_profile_is_the_share_of_runs_above_each_threshold():
    found = performance_profile(scores([0, 0.5, 1], [1, 1, 0.2]), np.array([-1, 0, 0.5, 0.9, 1]))
    np.testing.assert_allclose(found, np.array([6, 5, 3, 3, 0]) / 6)


def test_runs_are_resampled_within_their_task():
    """With no spread within tasks nothing varies, however far apart the tasks are."""
    low, high = stratified_interval(interquartile_mean, scores([0, 0, 0], [1, 1, 1]))
    assert low == high == 0.5
    low, high = stratified_interval(
        probability_of_improvement, scores([1, 1], [5, 5]), scores([0, 0], [5, 5])
    )
    assert low == high == 0.75


def test_the_interval_of_the_probability_of_improvement_has_its_known_distribution():
    """x is 0 or 1 with even odds and y is 0: the share of ones of n draws is binomial."""
    x, y = scores([0] * 50 + [1] * 50), scores([0] * 3)
    low, high = stratified_interval(probability_of_improvement, x, y)
    # P = (1 + share) / 2, and the share has a standard deviation of 0.05.
    assert (low, high) == pytest.approx((0.75 - 1.96 * 0.025, 0.75 + 1.96 * 0.025), abs=0.006)


def test_both_methods_are_resampled():
    """The spread of a difference has two sources."""
    rng = np.random.default_rng(1)
    x, y = [rng.normal(size=200)], [rng.normal(size=200)]

    def difference(a, b):
        return interquartile_mean(a) - interquartile_mean(b)

    def width(interval):
        return interval[1] - interval[0]

    both = width(stratified_interval(difference, x, y))
    alone = width(stratified_interval(interquartile_mean, x))
    assert both == pytest.approx(np.sqrt(2) * alone, rel=0.15)


def test_a_whole_profile_has_an_interval_at_each_threshold():
    thresholds = np.linspace(0, 1, 5)
    values = scores(np.linspace(0, 1, 20))
    low, high = stratified_interval(lambda x: performance_profile(x, thresholds), values)
    middle = performance_profile(values, thresholds)
    assert low.shape == (5,)
    assert np.all((low <= middle) & (middle <= high))
    assert np.all((high - low)[1:4] > 0.1)


# The numbers of rliable's own tests (tests/rliable/metrics_test.py), and what its version 1.2.0
# computes from the scores of its tests/library_test.py, X, and from their squares, Y: intervals are
# 95 % percentiles of 50,000 resamples (10,000 for the probability, 20,000 for the profile).
RUNS, TASKS = 5, 16
X = np.arange(RUNS * TASKS, dtype=float).reshape(RUNS, TASKS).T  # rliable has tasks as columns
Y = X**2 / 80
PROFILE_AT = np.array([0.0, 16, 40, 64, 79])


def test_agrees_with_the_tests_of_rliable():
    x, y = scores([1, 2, 1, 2], [2, 2, 1, 1]), scores([1, 2, 3], [1, 2, 3])
    assert interquartile_mean(x) == 1.5
    assert interquartile_mean(y) == 2
    assert probability_of_improvement(x, y) == pytest.approx(1 / 3)


def test_agrees_with_what_rliable_computes():
    assert interquartile_mean(list(X)) == pytest.approx(39.5)
    assert interquartile_mean(list(Y)) == pytest.approx(21.16875)
    assert probability_of_improvement(list(X), list(Y)) == pytest.approx(0.68625)
    assert probability_of_improvement(list(Y), list(X)) == pytest.approx(0.31375)
    for values, expected in (
        (X, [0.9875, 0.7875, 0.4875, 0.1875, 0.0]),
        (Y, [0.9875, 0.55, 0.2875, 0.1, 0.0]),
    ):
        np.testing.assert_allclose(performance_profile(list(values), PROFILE_AT), expected)


@pytest.mark.parametrize(
    ("statistic", "methods", "low", "high", "tolerance"),
    [
        (interquartile_mean, (X,), 32.475, 46.500625, 0.25),
        (interquartile_mean, (Y,), 14.76559375, 28.66157031, 0.25),
        (probability_of_improvement, (X, Y), 0.5975, 0.77125, 0.005),
    ],
)
def test_intervals_agree_with_those_of_rliable(statistic, methods, low, high, tolerance):
    """Within what resampling leaves to chance."""
    found = stratified_interval(statistic, *map(list, methods))
    assert found == pytest.approx((low, high), abs=tolerance)


def test_bands_of_profiles_agree_with_those_of_rliable():
    low, high = stratified_interval(lambda x: performance_profile(x, PROFILE_AT), list(Y))
    np.testing.assert_allclose(low, [0.9625, 0.4375, 0.2, 0.0375, 0.0], atol=0.0126)
    np.testing.assert_allclose(high, [1.0, 0.65, 0.3875, 0.1625, 0.0], atol=0.0126)
