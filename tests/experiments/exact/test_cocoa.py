"""COCOA beside the exact one: with true coefficients, it would not do better than it does."""

import jax
import numpy as np
import pytest

from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.hindsight_actions.cocoa import Cocoa
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.envs.linear_key_to_door import LinearKeyToDoor
from synthetic_returns.experiments.exact.quality import quality
from synthetic_returns.experiments.exact.truth import state_graph
from synthetic_returns.nn.settings import TorsoSettings

ENV = LinearKeyToDoor(apple=0.5)
GRAPH = state_graph(ENV)
TRUTH = GRAPH.solve(np.random.default_rng(0).dirichlet(np.full(4, 3.0), len(GRAPH.reward)))
EARNS = GRAPH.reward > 0
# What an outcome is: the reward, or the state in which it came, as far as features tell states
# apart. These also tell who had the key when picking an apple, which then seems to be its doing.
OUTCOMES = {
    "reward": np.where(GRAPH.reward == ENV.apple, 0, 1),
    "features": np.arange(len(GRAPH.over))[:, None] + np.zeros_like(GRAPH.after),
}


def exact_cocoa(one, outcome):
    """Eq. (3) of the paper with the exact ``p(a | s, u)``.

    That an action came before an outcome is to its chance as the number of such outcomes to be
    expected after it is to the number to be expected after any action.
    """
    now = EARNS[..., None] * np.eye(outcome.max() + 1)[outcome]
    to_come = np.zeros((len(GRAPH.over), now.shape[-1]))  # how often each is to be expected
    after = np.zeros_like(now)
    for _ in range(GRAPH.max_steps):
        after = np.where(GRAPH.last[..., None], 0, to_come[GRAPH.after])
        to_come = np.einsum("sa,sau->su", TRUTH.policy, now + after)
    usual = np.einsum("sa,sau->su", TRUTH.policy, after)[:, None]
    w = np.divide(after, usual, out=np.ones_like(after), where=usual > 0) - 1
    earned = now[one.states, one.episode.action] * one.episode.reward[:, None]
    later = np.cumsum(earned[::-1], axis=0)[::-1] - earned
    reward = GRAPH.reward[one.states]
    expected = (TRUTH.policy[one.states] * reward).sum(axis=1, keepdims=True)
    return reward - expected + np.einsum("tu,tau->ta", later, w[one.states])


def compared(played, credit):
    states = np.concatenate([one.states for one in played])
    action = np.concatenate([np.asarray(one.episode.action) for one in played])
    return quality(TRUTH, states, action, np.concatenate([credit(one) for one in played]))


@pytest.mark.parametrize("objects", ["reward", pytest.param("features", marks=pytest.mark.slow)])
def test_cocoa_is_as_good_as_its_exact_coefficients(objects):
    """Observations are codes of the states, so that the model can be exact."""
    spec = EpisodeSpec(ENV.observation_shape, np.dtype(np.float32), ENV.max_episode_steps,
                       num_actions=4, has_policy=True)  # fmt: skip
    method = Cocoa(
        objects=objects,
        encoder=TorsoSettings(sizes=(64,)),
        replay=Replay(slots=1024, batch_size=64, updates_per_episode=0.5),
        learning_rate=3e-3,
        most=5,
    )
    driver = CreditDriver(method, spec, View(), max_episode_steps=ENV.max_episode_steps,
                          num_envs=1, key=jax.random.key(0))  # fmt: skip
    for seed in range(20):
        driver.learn([one.episode for one in TRUTH.play(64, seed=seed)])
    played = TRUTH.play(1000, seed=1000)
    exact = compared(played, lambda one: exact_cocoa(one, OUTCOMES[objects]))
    learned = compared(
        played, lambda one: np.asarray(driver._credit_of(one.episode).advantage)[:, 0]
    )
    assert exact.correlation_of_means > 0.98
    assert learned.correlation_of_means > 0.98
    assert learned.correlation == pytest.approx(exact.correlation, abs=0.05)
