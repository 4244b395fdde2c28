"""Exact credit: the dynamic programme against episodes, and methods against it."""

import jax
import numpy as np
import pytest

from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.hindsight_actions.cocoa import Cocoa
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.envs.chain import Chain
from synthetic_returns.envs.linear_key_to_door import LinearKeyToDoor
from synthetic_returns.envs.umbrella import Umbrella
from synthetic_returns.experiments.exact_credit import quality, state_graph
from synthetic_returns.nn.settings import TorsoSettings


def some_policy(graph, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(graph.reward.shape[1], 3.0), len(graph.reward))


def uniform(graph):
    return np.full(graph.reward.shape, 1 / graph.reward.shape[1])


def test_the_chance_of_the_chain_is_the_documented_one():
    exact = state_graph(Chain()).solve(uniform(state_graph(Chain())))
    assert exact.value[0] == pytest.approx(0.0078, abs=1e-4)  # of visiting the trigger at random


def test_the_chain_of_three_moves_by_hand():
    """Two steps right of three visit the trigger: RR*, RLR never, LRR never: 1 in 4."""
    graph = state_graph(Chain(length=5, trigger=2, free_moves=3))
    exact = graph.solve(uniform(graph))
    assert exact.value[0] == pytest.approx(0.25)
    assert exact.advantage[0] == pytest.approx([-0.25, 0.25])


def test_values_are_the_mean_returns_of_episodes():
    graph = state_graph(LinearKeyToDoor())
    exact = graph.solve(some_policy(graph))
    played = exact.play(4000, seed=1)
    returns = [one.episode.reward.sum() for one in played]
    assert exact.value[0] == pytest.approx(np.mean(returns), abs=0.02)
    np.testing.assert_allclose((exact.policy * exact.advantage).sum(axis=1), 0, atol=1e-12)
    first = np.array([np.asarray(one.episode.action)[0] for one in played])
    for action in range(4):
        mean = np.mean(np.array(returns)[first == action])
        assert exact.advantage[0, action] == pytest.approx(mean - exact.value[0], abs=0.05)


def test_quality_knows_bias_from_variance():
    graph = state_graph(LinearKeyToDoor())
    exact = graph.solve(some_policy(graph))
    played = exact.play(300)
    rng = np.random.default_rng(0)
    of = {id(one.episode): one.states for one in played}

    def truth(episode):
        return exact.advantage[of[id(episode)]]

    perfect = quality(exact, played, truth)
    assert perfect.correlation == pytest.approx(1)
    assert perfect.bias == pytest.approx(0, abs=1e-9)
    assert perfect.variance == pytest.approx(0, abs=1e-9)
    shifted = quality(exact, played, lambda e: truth(e) + 0.3)
    assert (shifted.bias, shifted.variance) == pytest.approx((0.3, 0), abs=1e-6)
    noisy = quality(exact, played, lambda e: truth(e) + rng.normal(size=truth(e).shape))
    assert noisy.variance == pytest.approx(1, abs=0.1)
    assert noisy.bias < 0.25
    paid = quality(exact, played, lambda e: truth(e)[np.arange(len(e)), e.action])
    assert paid.correlation == pytest.approx(1)


@pytest.mark.parametrize("objects", ["reward", pytest.param("features", marks=pytest.mark.slow)])
def test_cocoa_finds_the_exact_advantages(objects):
    """Observations are codes of the states, so that the model can be exact."""
    env = LinearKeyToDoor(apple=0.5)
    graph = state_graph(env)
    exact = graph.solve(some_policy(graph))
    spec = EpisodeSpec(env.observation_shape, np.dtype(np.float32), env.max_episode_steps,
                       num_actions=4, has_policy=True)  # fmt: skip
    method = Cocoa(
        objects=objects,
        encoder=TorsoSettings(sizes=(64,)),
        replay=Replay(slots=1024, batch_size=64, updates_per_episode=0.5),
        learning_rate=3e-3,
        most=5,
    )
    driver = CreditDriver(method, spec, View(), max_episode_steps=env.max_episode_steps,
                          num_envs=1, key=jax.random.key(0))  # fmt: skip
    for one in range(20):
        driver.learn([p.episode for p in exact.play(64, seed=one)])
    played = exact.play(300, seed=1000)
    found = quality(exact, played,
                    lambda e: np.asarray(driver._credit_of(e).advantage)[:, 0])  # fmt: skip
    plain = quality(exact, played, _of_the_return)
    assert found.bias < 0.25 * found.exact  # their means are right; single ones depend on luck
    assert found.variance < 0.5 * plain.variance
    assert found.correlation > plain.correlation + 0.1


def _of_the_return(episode):
    """The plain policy gradient: the return to come, for the action taken, over its chance."""
    to_come = np.cumsum(episode.reward[::-1])[::-1]
    advantage = np.zeros(episode.log_probs.shape)
    rows = np.arange(len(episode))
    advantage[rows, episode.action] = to_come / np.exp(episode.log_probs[rows, episode.action])
    return advantage


def test_what_is_not_small_and_certain_is_refused():
    with pytest.raises(ValueError, match="Umbrella draws random numbers while it runs"):
        state_graph(Umbrella())
    with pytest.raises(ValueError, match=r"Chain has more than 10 states; .*make it smaller"):
        state_graph(Chain(), most=10)
    graph = state_graph(LinearKeyToDoor())
    with pytest.raises(ValueError, match="rows that sum to 4 to 4; give the"):
        graph.solve(np.ones_like(graph.reward))
    with pytest.raises(ValueError, match="no episodes to compare"):
        quality(graph.solve(uniform(graph)), [], _of_the_return)
