"""The bandits: the discounts they choose from, and that they find the best arm and leave it."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.agents.r2d2.bandit import Bandits, discount_ladder
from synthetic_returns.agents.r2d2.settings import BanditSettings
from synthetic_returns.types import StepType, TimeStep
from tests.agents.test_sequence_replay import unroll

SETTINGS = BanditSettings(arms=3, window=20, random=0.0)


def episodes(returns):
    """An unroll in which each environment ends one episode with this return, or none (NaN)."""
    envs = len(returns)
    kind = np.full((3, envs), StepType.MID, np.int8)
    kind[2, ~np.isnan(returns)] = StepType.LAST
    half = jnp.asarray(np.broadcast_to(np.nan_to_num(returns) / 2, kind.shape), jnp.float32)
    timestep = TimeStep(
        step_type=jnp.asarray(kind),
        reward=half.at[0].set(100.0),  # of the step before
        discount=jnp.ones_like(half),
        observation=half[..., None],
        events={},
    )
    return dataclasses.replace(unroll(0), timestep=timestep)


def slow_choice(history, arms, window, bonus):
    """The formula, in plain loops."""
    history = history[-window:]
    for arm in range(arms):
        if arm not in [played for played, _ in history]:
            return arm
    least = min(value for _, value in history)
    most = max(value for _, value in history)
    scores = []
    for arm in range(arms):
        own = [
            (value - least) / max(most - least, 1e-8) for played, value in history if played == arm
        ]
        scores.append(sum(own) / len(own) + bonus * np.sqrt(np.log(len(history)) / len(own)))
    return int(np.argmax(scores))


def test_choices_are_those_of_ucb_over_a_window():
    bandits = Bandits(SETTINGS, streams=2, num_envs=2)
    rng = np.random.default_rng(0)
    histories = [[], []]
    for _ in range(60):
        before = bandits.arm[1].copy()
        returns = rng.normal(size=2) + before  # the last arm is the best one
        bandits.follow(episodes(returns), stream=1)
        for env in range(2):
            histories[env].append((before[env], np.float32(returns[env])))
            assert bandits.arm[1, env] == slow_choice(histories[env], 3, 20, SETTINGS.bonus)
    arms = [arm for history in histories for arm, _ in history[20:]]
    assert np.mean(np.equal(arms, 2)) > 0.45
    np.testing.assert_array_equal(bandits.arm[0], [0, 1])  # another stream's are as they were


def test_what_was_best_is_left_when_it_no_longer_is():
    bandits = Bandits(SETTINGS, streams=1, num_envs=1)
    best = []
    for episode in range(150):
        arm = int(bandits.arm[0, 0])
        best.append(arm)
        bandits.follow(episodes(np.array([1.0 if arm == (0 if episode < 60 else 2) else 0.0])))
    assert np.mean(np.equal(best[30:60], 0)) > 0.6
    assert np.mean(np.equal(best[-40:], 2)) > 0.6


def test_an_arm_is_kept_to_the_end_of_the_episode_and_all_rewards_of_it_count():
    bandits = Bandits(SETTINGS, streams=1, num_envs=1)
    bandits.arm[:] = 1
    running = episodes(np.array([np.nan]))
    reward = running.timestep.reward.at[1:].set(2.0)
    bandits.follow(dataclasses.replace(
        running, timestep=dataclasses.replace(running.timestep, reward=reward)
    ))  # fmt: skip
    assert bandits.arm[0, 0] == 1
    bandits.follow(episodes(np.array([3.0])))
    assert bandits.snapshot()["returned"][0, 0, 0] == 7.0  # 2 + 2, and 3; what led here is not
    assert bandits.snapshot()["played"][0, 0, 0] == 1
    bandits.follow(episodes(np.array([5.0])))
    assert bandits.snapshot()["returned"][0, 0, 1] == 5.0


def test_discounts_go_up_in_equal_ratios_of_what_they_leave_out():
    np.testing.assert_allclose(discount_ladder(0.9, 0.999, 3), [0.9, 0.99, 0.999], rtol=1e-5)
    np.testing.assert_allclose(discount_ladder(0.9, 0.99, 1), [0.99], rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"arms": 1}, "arms is 1; .* at least 2"),
        ({"arms": 3, "window": 3}, "window is 3 .* more episodes than arms"),
        ({"arms": 2, "random": 1.5}, r"random is 1.5; .* \[0, 1\]"),
    ],
)
def test_settings_that_leave_no_choice_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        BanditSettings(**settings)
