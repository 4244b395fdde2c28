"""Conservation: over a complete episode, what is paid sums to the true return.

Whatever the model says, however the stream is cut, and also if the model learns in the middle.
"""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.method import Need
from synthetic_returns.credit.reward_mix import RewardMix
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.types import StepType
from tests.credit.methods import CONSERVING, Fickle, Linear
from tests.credit.test_recorder import LONGEST, make_stream, segments

EACH = pytest.mark.parametrize("kind", CONSERVING, ids=lambda kind: kind.name)
STREAMS = st.lists(
    st.lists(st.integers(1, LONGEST), min_size=5, max_size=9), min_size=1, max_size=3
)


def make_driver(method, num_envs, seed=0):
    spec = EpisodeSpec((2,), np.dtype(np.float32), LONGEST, num_actions=2, has_policy=True)
    return CreditDriver(method, spec, View(), max_episode_steps=LONGEST, num_envs=num_envs,
                        key=jax.random.key(seed))  # fmt: skip


def small(streams, cut=0):
    """Numbers to learn from, without the first steps."""
    return [
        [(kind, number / 1e6, *rest[:2], rest[2] % 2) for kind, number, *rest in row[cut:]]
        for row in streams
    ]


def pay(driver, parts, alpha=1.0):
    """What the agent is paid for each transition whose credit is known, and the credit."""
    mix, paid, given = RewardMix(alpha=alpha, beta=1.0), [], []
    for part in parts:
        for segment, credit in driver.follow(part, part):
            reward = np.asarray(credit.reward)
            paid.append(mix.augmented(segment.reward, reward, segment.last[1:]))
            given.append(reward)
    return np.concatenate(paid), np.concatenate(given)


def assert_conserved(paid, credit, episodes, since=0):
    """Every complete episode was paid its return; their number."""
    complete = 0
    for row, end, episode in episodes:
        start = end - len(episode) - since
        if start < 0 or end - since > len(paid):
            continue
        size = np.abs(credit[start : end - since, row]).sum() + np.abs(episode.reward).sum()
        total = paid[start : end - since, row].sum(dtype=np.float64)
        assert total == pytest.approx(episode.reward.sum(), abs=1e-5 * float(1 + size))
        complete += 1
    return complete


@EACH
@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    rows=STREAMS,
    length=st.sampled_from([1, 3, 7]),
    seed=st.integers(0, 5),
    cut=st.integers(0, 3),
    alpha=st.floats(-3, 3),
)
def test_every_complete_episode_is_paid_its_return(kind, rows, length, seed, cut, alpha):
    """Every other one terminates, the rest is cut off; the first ones may be joined late."""
    streams, episodes = make_stream(rows, seed=seed)
    driver = make_driver(kind(), len(rows), seed)
    paid, credit = pay(driver, segments(small(streams, cut), length), alpha)
    assert_conserved(paid, credit, episodes, cut)


def test_learning_in_the_middle_of_an_episode_changes_what_is_paid_but_not_the_sum():
    rows = [[1] * 20, [LONGEST] * 4]
    streams, episodes = make_stream(rows, seed=1)
    driver = make_driver(Fickle(), 2)
    updates, paid, given = [], [], []
    for part in segments(small(streams), 1):
        one, credit = pay(driver, [part])
        updates.append(driver.updates)
        paid.append(one)
        given.append(credit)
    assert updates[LONGEST - 1] > 1  # within the first long episode
    assert assert_conserved(np.concatenate(paid), np.concatenate(given), episodes) > 15


@pytest.mark.parametrize("then", ["restored", "frozen"])
@pytest.mark.parametrize("kind", [k for k in CONSERVING if Need.WHOLE_EPISODES not in k.needs])
def test_an_episode_is_settled_that_was_running_when_the_driver_was(kind, then):
    rows = [[6, 3, 5, 4, 6, 2, 6], [2, 5, 6, 6, 1, 4, 5]]
    streams, episodes = make_stream(rows, seed=2)
    driver = make_driver(kind(), 2)
    rows = small(streams)
    before = pay(driver, segments([row[:15] for row in rows], 2))
    if then == "restored":
        other = make_driver(kind(), 2, seed=7)
        other.restore(driver.snapshot())
        driver = other
    else:
        driver.freeze()
    after = pay(driver, segments([row[14:] for row in rows], 2))
    paid, credit = (np.concatenate(both) for both in zip(before, after, strict=True))
    assert all(row[14][0] == StepType.MID for row in rows), "both episodes should be running"
    assert assert_conserved(paid, credit, episodes) > 8


def test_a_method_that_does_not_conserve_pays_more():
    """Else the tests above would say nothing."""
    streams, episodes = make_stream([[6] * 6], seed=3)
    driver = make_driver(Linear(), 1)
    with pytest.raises(AssertionError):
        assert_conserved(*pay(driver, segments(small(streams), 1)), episodes)
