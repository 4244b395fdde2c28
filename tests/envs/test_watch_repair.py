from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.envs.base import VectorEnvironment
from synthetic_returns.envs.watch_repair import WatchRepair
from tests.envs.playing import arrange, follow, play, random_policy

# As the authors' code has them, by brand.
PRICE = [18, 28, 31, 59]
REPAIR, BRAND = [1, 4, 5, 24.5], [0.5, 2.5, 4.5, 18]


@pytest.mark.parametrize("brand", range(4))
def test_a_repair_is_charged_at_once_and_paid_at_the_end_and_nothing_else_is(brand):
    env, episodes = WatchRepair(), 400
    keys = jax.random.split(jax.random.key(1), episodes)
    for key in keys[:3]:
        left = follow(env, arrange(env, brand=brand, key=key), [0, *[1] * 49])
        assert not np.any(left.reward)  # whatever is done later
    steps = jax.vmap(
        lambda key: follow_all(env, arrange(env, brand=brand, key=key), [1, *[0] * 49])
    )(keys)
    reward = np.asarray(steps.reward)
    assert not np.any(reward[:, 1:-1])
    charged = -reward[:, 0]
    events = np.asarray(steps.events["jam"]).sum(1) * 0.1
    events = events + np.asarray(steps.events["flat_tyre"]).sum(1) * 7
    net = PRICE[brand] - events - reward[:, -1]  # the cost of the brand
    spread = 1 if brand == 3 else 2
    assert charged.mean() == pytest.approx(REPAIR[brand], abs=4 * spread / 20)
    assert charged.std() == pytest.approx(spread, rel=0.2)
    assert net.mean() == pytest.approx(BRAND[brand], abs=4 * 1.5 / 20)
    assert net.std() == pytest.approx(1.5, rel=0.2)
    assert events.mean() == pytest.approx(18, abs=4 * 10.8 / 20)


def follow_all(env, state, actions):
    """Like ``follow``, to be vmapped."""
    return jax.lax.scan(env.step, state, np.asarray(actions, np.int32))[1]


@pytest.mark.parametrize("length", [10, 50, 80])
def test_the_second_and_the_third_brand_pay_off_on_any_way(length):
    env = WatchRepair(length=length)
    right = [int(env.optimal_action(arrange(env, brand=brand))) for brand in range(4)]
    assert right == [0, 1, 1, 0]
    for brand, decision in enumerate(right):
        steps = follow(env, arrange(env, brand=brand), [decision, *[0] * (length - 1)])
        assert steps.events["success"].tolist() == [*[0] * (length - 1), 1]


def test_all_that_happens_is_seen_when_it_happens_and_stays_visible():
    env = WatchRepair()
    steps = follow(env, arrange(env, brand=2), [1, *[0] * 49])
    seen = steps.observation
    np.testing.assert_array_equal(seen[:, :4], [[0, 0, 1, 0]] * 50)
    assert (seen[:, 4] == 1).all()
    np.testing.assert_allclose(seen[:, 5], np.arange(49, -1, -1) / 50, atol=1e-6)
    for column, event in ((6, "jam"), (7, "flat_tyre")):
        assert steps.events[event].sum() > 0
        np.testing.assert_array_equal(seen[:, column], steps.events[event])
        np.testing.assert_allclose(
            seen[:, column + 2], np.cumsum(steps.events[event]) / 50, atol=1e-6
        )


def test_the_decision_contributes_the_mean_of_what_it_earns_and_mishaps_what_they_cost():
    env = WatchRepair()
    vector: Any = VectorEnvironment(env, contributions=True)
    state = arrange(env, brand=1)
    usual = 0.1 * 0.1 + 0.05 * 7
    for t in range(49):
        state, step = vector._step_one(state, jnp.int32(t == 0))
        happened = 0.1 * float(step.events["jam"]) + 7 * float(step.events["flat_tyre"])
        want = usual - happened + (28 - 2.5 - 18 if t == 0 else 0)
        assert float(step.contribution) == pytest.approx(want, abs=1e-4)
    owed = float(env.owed(state))
    _, step = vector._step_one(state, jnp.int32(0))
    assert float(step.contribution) == pytest.approx(-owed, abs=1e-4)
    assert not np.any([float(env.owed(arrange(env, brand=b, time=7))) for b in range(4)])


def test_a_random_decision_is_right_half_of_the_time():
    played = play(WatchRepair(), random_policy, seed=0, episodes=2000)
    assert played["success"].mean() == pytest.approx(0.5, abs=0.05)


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="length=0"):
        WatchRepair(length=0)
