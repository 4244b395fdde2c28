"""Intervals of a mean, and curves at common steps."""

import numpy as np
import pytest

from synthetic_returns.utils.statistics import align_curves, known_points, mean_interval

NAN = np.nan


def test_the_interval_is_that_of_a_mean():
    """About 1.96 standard errors to both sides; nothing for constant values; repeatable."""
    values = np.random.default_rng(1).normal(5, 2, 400)
    low, high = mean_interval(values)
    error = 1.96 * values.std() / np.sqrt(400)
    assert (low, high) == pytest.approx((values.mean() - error, values.mean() + error), rel=0.01)
    assert mean_interval(values) == (low, high)
    assert mean_interval(np.full(7, 3.0)) == (3, 3)


def test_a_whole_curve_has_the_intervals_of_its_points():
    seeds = np.random.default_rng(2).normal(size=(6, 3))
    low, high = mean_interval(seeds, samples=500)
    for point in range(3):
        one = mean_interval(seeds[:, point], samples=500)
        np.testing.assert_allclose((low[point], high[point]), one)


def curve(steps, values):
    return np.array(steps, float), np.array(values, float)


def test_curves_are_read_where_all_have_values():
    """From 2, where the second begins, to 6, where the first ends; NaN is bridged."""
    first = curve([0, 2, 4, 6], [0, NAN, 4, 8])
    second = curve([1, 2, 10], [NAN, 1, 9])
    never = curve([0, 8], [NAN, NAN])
    grid, values = align_curves([first, second, never], points=3)
    np.testing.assert_allclose(grid, [2, 4, 6])
    np.testing.assert_allclose(values, [[2, 4, 8], [1, 3, 5]])


def test_curves_that_do_not_meet_have_one_step():
    grid, values = align_curves([curve([0, 1], [0, 1]), curve([5, 6], [5, 6])], points=2)
    np.testing.assert_allclose(grid, [5, 5])
    np.testing.assert_allclose(values, [[1, 1], [5, 5]])


def test_without_values_there_is_nothing():
    assert known_points([curve([0], [NAN]), curve([], [])]) == []
    grid, values = align_curves([curve([0], [NAN])], points=3)
    assert len(grid) == len(values) == 0
