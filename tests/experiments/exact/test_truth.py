"""The dynamic programme against episodes and against values worked out by hand."""

import numpy as np
import pytest

from synthetic_returns.envs.chain import Chain
from synthetic_returns.envs.linear_key_to_door import LinearKeyToDoor
from synthetic_returns.envs.umbrella import Umbrella
from synthetic_returns.experiments.exact.truth import state_graph


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


def test_states_know_on_which_step_they_are_there():
    env = LinearKeyToDoor()
    graph = state_graph(env)
    cell = graph.observation[:, : env.length].argmax(axis=1)
    np.testing.assert_array_equal(graph.time[~graph.over], cell[~graph.over])
    assert set(graph.time[graph.over]) == {env.length}


def test_what_is_not_small_and_certain_is_refused():
    with pytest.raises(ValueError, match="Umbrella draws random numbers while it runs"):
        state_graph(Umbrella())
    with pytest.raises(ValueError, match=r"Chain has more than 10 states; .*make it smaller"):
        state_graph(Chain(), most=10)
    graph = state_graph(LinearKeyToDoor())
    with pytest.raises(ValueError, match="rows that sum to 4 to 4; give the"):
        graph.solve(np.ones_like(graph.reward))
