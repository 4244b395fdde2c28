"""The paper's method: it fits every agent, and the laws of auxiliary methods are its own."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.method import Assignment
from synthetic_returns.credit.paper.method import Paper
from synthetic_returns.engines.engine import make_engine
from tests.credit.agent_states import FEATURES, HIDDEN, make_states, part_of
from tests.small import small_config

# Compiled as a whole: a program for every operation would take far longer.
learn = eqx.filter_jit(lambda method, *given: method.learn(*given))


def test_nothing_is_learned_from_an_episode_before_its_start_was_seen():
    """Training may begin in the middle of episodes, whose sums over past states are cut."""
    method, states = Paper(sizes=(4, 4)), part_of(make_states(12, 2), 1, 5)
    assert not np.any(states.first[:-1, 0])
    assert np.any(states.first[:-1, 1])
    memory = method.start(2, FEATURES, 4)
    assert not np.any(memory.whole)
    model = method.init(FEATURES, HIDDEN, jax.random.key(0))
    outcome = learn(method, model, memory, states)
    np.testing.assert_array_equal(outcome.memory.whole, [False, True])
    rewarded = eqx.tree_at(lambda s: s.reward, states, states.reward.at[:, 0].add(100.0))
    assert float(learn(method, model, memory, rewarded).loss) == float(outcome.loss) > 0


def test_the_credit_carries_no_gradient_and_the_cost_scales_the_loss():
    states = make_states(8, 2)
    method = Paper(sizes=(4, 4))
    model = method.init(FEATURES, HIDDEN, jax.random.key(0))
    memory = method.start(2, FEATURES, 4)
    grads = eqx.filter_grad(lambda m: jnp.sum(learn(method, m, memory, states).reward))(model)
    assert not any(np.any(x) for x in jax.tree.leaves(grads))
    double = learn(Paper(sizes=(4, 4), cost=2.0), model, memory, states)
    assert double.loss == pytest.approx(2 * float(learn(method, model, memory, states).loss))


@pytest.mark.parametrize("two_stage", [False, True])
def test_the_unit_of_reward_is_that_of_c_and_b(two_stage):
    """Nothing is standardised: in another unit, c and b have to be learned in that unit.

    If they are, all else is the same. A power of two makes that exact.
    """
    method = Paper(sizes=(4, 4), two_stage=two_stage)
    model = method.init(FEATURES, HIDDEN, jax.random.key(0))
    memory = method.start(2, FEATURES, 4)
    outputs = [model.c.layers[-1], model.b.layers[-1]]
    scaled = eqx.tree_at(
        lambda m: [m.c.layers[-1], m.b.layers[-1]], model, jax.tree.map(lambda x: 4 * x, outputs)
    )
    one = learn(method, model, memory, make_states(8, 2))
    four = learn(method, scaled, memory, make_states(8, 2, scale=4.0))
    np.testing.assert_array_equal(four.reward, 4 * one.reward)
    assert float(four.loss) == 16 * float(one.loss)
    assert float(four.metrics["gate_mean"]) == float(one.metrics["gate_mean"])


@pytest.mark.parametrize("clock", [True, False])
def test_g_and_b_may_see_the_core_of_any_agent(clock):
    """Also of one that has a clock and no LSTM: what they see is features and the time."""
    settings = {"credit": Paper(sizes=(8, 8), current="core"), "agent.clock": clock}
    engine = make_engine(small_config("episodic", settings), [0])
    for _ in range(3):
        engine.step()
    assert np.isfinite(engine.report()[0]["loss/credit"])


def test_arriving_in_a_terminal_state_or_another_episode_earns_nothing():
    last = jnp.asarray([[False], [False], [True], [False]])
    reward = jnp.asarray([[1.0], [2.0], [3.0]])
    advantage = jnp.ones((3, 1, 2))
    earned = Assignment(reward, advantage).earned(last)
    np.testing.assert_array_equal(earned.reward, [[1.0], [0.0], [0.0]])
    assert earned.advantage is not None
    np.testing.assert_array_equal(earned.advantage[:, 0, 0], [1.0, 1.0, 0.0])
    assert Assignment().earned(last) is not None
