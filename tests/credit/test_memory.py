"""The memory of episodes is bounded, and all of it is reported."""

import jax
import numpy as np
import pytest

from synthetic_returns.credit.data.memory import slots_that_fit
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from tests.credit.methods import Linear, Uniform
from tests.credit.test_recorder import LONGEST, make_stream, segments

STATE, OTHERS = 8, 4 + 4 + 4 + 8 + 4  # bytes; reward, discount, action, log_probs of two, value


def make_spec(**known):
    return EpisodeSpec((2,), np.dtype(np.float32), LONGEST, num_actions=2, **known)


def test_all_that_is_kept_of_a_step_counts():
    episode = (100 * (STATE + OTHERS) + STATE) / 1e6
    assert slots_that_fit(40.5 * episode, 64, 10, make_spec(has_policy=True), 100) == 30
    assert slots_that_fit(40.5 * episode, 64, 10, make_spec(), 100) > 30
    with pytest.raises(ValueError, match="10 running episodes and 16 finished ones"):
        slots_that_fit(25.5 * episode, 64, 10, make_spec(has_policy=True), 100)


@pytest.mark.parametrize("stride", [1, 2])
def test_running_and_waiting_episodes_are_reported(stride):
    def reported(method, **settings):
        view = View(stride=stride)
        driver = CreditDriver(method, make_spec(has_policy=True), view, max_episode_steps=LONGEST,
                              num_envs=1, key=jax.random.key(0), **settings)  # fmt: skip
        streams, _ = make_stream([[4, 6]], seed=0)
        item = np.zeros(25, np.float32)
        for part in list(segments(streams, 2))[:4]:  # an end, and three steps of the next episode
            driver.follow(part, item)
        return 1e6 * driver.report()["running_mb"]

    step, kept = STATE + OTHERS, View(stride=stride).kept
    assert reported(Linear()) == pytest.approx(kept(3) * step)
    waiting = kept(4) * step + STATE
    assert reported(Linear(), learn_every=2) == pytest.approx(kept(3) * step + waiting)
    held = 2 * (100 + 2 * 4)  # the segments that the episode runs in, and their credit
    assert reported(Uniform()) == pytest.approx(kept(3) * step + held)
