import numpy as np
import pytest

from synthetic_returns.experiments.solving import WINDOW, find_solving, smooth

NAN = float("nan")


def curve(*pieces: tuple[float, int]) -> np.ndarray:
    return np.concatenate([np.full(rows, value) for value, rows in pieces])


def test_smoothing_looks_back_over_a_window_and_never_ahead():
    values = np.arange(10.0)
    expected = [values[max(0, row - WINDOW + 1) : row + 1].mean() for row in range(10)]
    np.testing.assert_allclose(smooth(values), expected)


def test_rows_without_finished_episodes_are_bridged():
    smoothed = smooth(np.array([NAN, 1.0, NAN, 3.0, NAN]))
    np.testing.assert_allclose(smoothed, [NAN, 1, 1, 2, 2])


def test_solved_when_the_smoothed_curve_reaches_the_threshold():
    solving = find_solving(curve((0.0, 20), (1.0, 20)), 0.98)
    assert solving is not None
    # The mean over 5 rows is 1 for the first time in the fifth row of ones.
    assert solving.row == 20 + WINDOW - 1
    assert solving.lowest == 1


def test_a_dip_within_the_margin_does_not_undo_it():
    solving = find_solving(curve((0.0, 20), (1.0, 20), (0.95, 20)), 0.98)
    assert solving is not None
    assert solving.row == 24
    assert solving.lowest == pytest.approx(0.95)


def test_what_was_lost_counts_from_when_it_was_solved_again():
    solving = find_solving(curve((0.0, 10), (1.0, 10), (0.2, 10), (1.0, 10)), 0.98)
    assert solving is not None
    assert solving.row == 34
    assert solving.lowest == pytest.approx(0.2)


@pytest.mark.parametrize(
    "success",
    [
        curve((0.97, 50)),  # never reached
        curve((1.0, 40), (0.5, 10)),  # reached and lost
        np.full(5, NAN),
        np.zeros(0),
    ],
)
def test_not_solved(success):
    assert find_solving(success, 0.98) is None


def test_a_margin_that_stays_below_the_threshold_is_not_enough():
    # 0.95 is above 95 % of 0.98, but the threshold is only reached before the fall.
    assert find_solving(curve((1.0, 10), (0.2, 10), (0.95, 30)), 0.98) is None
