"""Steps on the host mean what steps in JAX mean."""

import numpy as np

from synthetic_returns.envs.host import HostStep
from synthetic_returns.types import StepType

FIRST, MID, LAST = StepType.FIRST, StepType.MID, StepType.LAST


def later(**changes):
    """Four environments: one goes on, one terminates, one is cut off, one starts anew."""
    arguments = {
        "observation": np.zeros((4, 2), np.uint8),
        "reward": np.array([1, 2, 3, 4], np.int32),
        "terminated": np.array([False, True, False, True]),
        "truncated": np.array([False, False, True, False]),
        "restarted": np.array([False, False, False, True]),
        "events": {"gate": np.array([True, False, True, True])},
    }
    return HostStep.later(**arguments | changes)


def test_a_step_in_the_terms_of_gymnasium():
    step = later()
    np.testing.assert_array_equal(step.step_type, [MID, LAST, LAST, FIRST])
    np.testing.assert_array_equal(step.last, [False, True, True, False])
    # Truncation bootstraps, termination does not; a start has neither a reward nor an end.
    np.testing.assert_array_equal(step.discount, [1, 0, 1, 1])
    np.testing.assert_array_equal(step.reward, [1, 2, 3, 0])
    np.testing.assert_array_equal(step.events["gate"], [1, 0, 1, 0])
    assert {step.reward.dtype, step.discount.dtype, step.events["gate"].dtype} == {
        np.dtype(np.float32)
    }
    assert step.step_type.dtype == np.int8
    assert step.observation.dtype == np.uint8


def test_an_episode_that_ends_by_both_terminates():
    both = later(truncated=np.ones(4, bool))
    np.testing.assert_array_equal(both.discount, [1, 0, 1, 1])


def test_the_first_step():
    step = HostStep.first(np.ones((3, 2), np.float32), ("success",))
    np.testing.assert_array_equal(step.step_type, [FIRST] * 3)
    np.testing.assert_array_equal(step.reward, [0, 0, 0])
    np.testing.assert_array_equal(step.discount, [1, 1, 1])
    np.testing.assert_array_equal(step.events["success"], [0, 0, 0])
