"""No reward is lost, duplicated or moved to another episode, however environments start anew."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synthetic_returns.wrappers.vector import SyntheticReturnsVectorWrapper
from tests.wrappers.planned import Known, PlannedEnv, assert_recorded, contribution, listen

LONGEST = 6
ALPHA, BETA = 0.5, 2.0

PLANS = st.lists(
    st.lists(st.tuples(st.integers(1, LONGEST), st.booleans()), min_size=1, max_size=4),
    min_size=1,
    max_size=3,
)


def wrapped(plans, mode, **parameters):
    rows = [lambda row=row, plan=plan: PlannedEnv(row, plan) for row, plan in enumerate(plans)]
    return SyntheticReturnsVectorWrapper(
        SyncVectorEnv(rows, autoreset_mode=mode),
        **{"method": Known(), "max_episode_steps": LONGEST, "learn_every": 1} | parameters,
    )


def inner(env):
    assert isinstance(env.env, SyncVectorEnv)
    return env.env


@pytest.mark.parametrize("mode", AutoresetMode)
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(plans=PLANS, steps=st.integers(1, 40), copy=st.booleans())
def test_no_reward_is_lost_duplicated_or_moved(mode, plans, steps, copy, monkeypatch):
    env = wrapped(plans, mode, alpha=ALPHA, beta=BETA)
    inner(env).copy = copy  # else the environment writes into the same observations again and again
    heard = listen(env, monkeypatch)
    env.reset(seed=0)
    over, finished = np.zeros(len(plans), bool), [0] * len(plans)
    for _ in range(steps):
        if mode is AutoresetMode.DISABLED and over.any():
            env.reset(options={"reset_mask": over.copy()})
            over[:] = False
        observation, augmented, terminated, truncated, info = env.step(np.zeros(len(plans), int))
        ended = terminated | truncated
        dummy = over if mode is AutoresetMode.NEXT_STEP else np.zeros_like(over)
        # What was arrived in is known where the episode goes on; its end earns no c.
        c = np.where(ended | dummy, 0, contribution(observation))
        np.testing.assert_array_equal(info["synthetic_return"], c)
        np.testing.assert_array_equal(info["_synthetic_return"], ~dummy)
        np.testing.assert_allclose(augmented, ALPHA * c + BETA * info["true_reward"], rtol=1e-6)
        over = ended
        finished = [n + bool(end) for n, end in zip(finished, ended, strict=True)]
    # One step learns from one episode at most; the others wait.
    assert_recorded([*heard, *env.credit.driver.waiting], plans, finished)


def test_a_reset_forgets_what_was_running(monkeypatch):
    plans = [[(4, False)], [(6, True)]]
    env = wrapped(plans, AutoresetMode.NEXT_STEP)
    heard = listen(env, monkeypatch)
    for _ in range(2):
        env.reset()
        for _ in range(3):
            env.step(np.zeros(2, int))
    env.step(np.zeros(2, int))
    assert len(heard) == 1
    np.testing.assert_array_equal(heard[0].observation[:, 1], 1)  # wholly of the second episode
    np.testing.assert_array_equal(heard[0].observation[:, 2], [0, 1, 2, 3, 4])


def test_a_mask_starts_only_some(monkeypatch):
    env = wrapped([[(4, False)], [(4, False)]], AutoresetMode.DISABLED)
    heard = listen(env, monkeypatch)
    env.reset()
    env.step(np.zeros(2, int))
    env.reset(options={"reset_mask": np.array([True, False])})
    for _ in range(3):
        env.step(np.zeros(2, int))
    assert [len(episode) for episode in heard] == [4]
    assert heard[0].observation[0, 0] == 1


def test_a_row_that_waits_for_its_reset_earns_nothing(monkeypatch):
    plans = [[(2, False)], [(5, False)]]
    env = wrapped(plans, AutoresetMode.DISABLED)
    heard = listen(env, monkeypatch)
    env.reset()
    for _ in range(2):
        env.step(np.zeros(2, int))
    inner(env)._autoreset_envs[:] = False  # lets the environment be stepped beyond its end
    _, _, _, _, info = env.step(np.zeros(2, int))
    assert info["synthetic_return"][0] == 0
    np.testing.assert_array_equal(info["_synthetic_return"], [False, True])
    assert [len(episode) for episode in heard] == [2]


def test_actions_are_those_of_each_state(monkeypatch):
    env = wrapped([[(3, False)], [(5, False)]], AutoresetMode.NEXT_STEP)
    listen(env, monkeypatch)
    env.reset()
    for t in range(7):
        env.step(np.array([t % 5, (t + 1) % 5]))
    first, second, third = env.recent_episodes()
    np.testing.assert_array_equal(first.action, [0, 1, 2])
    np.testing.assert_array_equal(second.action, [1, 2, 3, 4, 0])
    np.testing.assert_array_equal(third.action, [4, 0, 1])  # 3 only started the episode


def test_episodes_wait_and_are_learned_from_together(monkeypatch):
    """Four environments, episodes of one step: never more than three are learned from at once."""
    env = wrapped([[(1, False)]] * 4, AutoresetMode.SAME_STEP, learn_every=3)
    groups = []
    monkeypatch.setattr(env.credit.driver, "learn", lambda episodes: groups.append(len(episodes)))
    env.reset()
    for count in range(1, 60):
        env.step(np.zeros(4, int))
        assert groups == [3] * count
    slots = env.credit.driver.buffer.slots
    assert len(env.credit.driver.waiting) <= slots  # what cannot be caught up with is dropped
