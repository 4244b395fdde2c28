"""The paper's method: it fits every agent, and its laws are those of all methods."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.auxiliary import AgentStates
from synthetic_returns.credit.method import Assignment
from synthetic_returns.credit.paper.method import Paper
from synthetic_returns.engines.engine import make_engine
from tests.small import small_config

FEATURES, HIDDEN = 3, 5

# Compiled as a whole: a program for every operation would take far longer.
learn = eqx.filter_jit(lambda method, *given: method.learn(*given))


def make_states(time: int, batch: int, seed: int = 0, scale: float = 1.0) -> AgentStates:
    """Random states of episodes of four steps each, whose rows begin at different points."""
    rng = np.random.default_rng(seed)
    at = (np.arange(time + 1)[:, None] + np.arange(batch)[None]) % 5
    return AgentStates(
        features=jnp.asarray(rng.normal(size=(time + 1, batch, FEATURES)), jnp.float32),
        hidden=jnp.asarray(rng.normal(size=(time + 1, batch, HIDDEN)), jnp.float32),
        first=jnp.asarray(at == 0),
        last=jnp.asarray(at == 4),
        reward=jnp.asarray(scale * rng.normal(size=(time, batch)), jnp.float32),
    )


def part_of(states: AgentStates, start: int, end: int) -> AgentStates:
    """The transitions from ``start`` to ``end``."""
    cut = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[start : end + 1]), states)
    return eqx.tree_at(lambda s: s.reward, cut, jnp.asarray(np.asarray(states.reward)[start:end]))


@pytest.mark.parametrize("current", ["features", "core"])
def test_cutting_an_unroll_changes_no_credit_and_no_memory(current):
    method, states = Paper(sizes=(4, 4), current=current), make_states(12, 3)
    model = method.init(FEATURES, HIDDEN, jax.random.key(0))
    empty = method.start(3, FEATURES, 4)
    whole = learn(method, model, empty, states)
    memory, rewards = empty, []
    for start in range(0, 12, 4):
        outcome = learn(method, model, memory, part_of(states, start, start + 4))
        memory = outcome.memory
        rewards.append(outcome.reward)
    np.testing.assert_allclose(np.concatenate(rewards), whole.reward, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(memory.states, whole.memory.states, rtol=1e-6)
    np.testing.assert_array_equal(memory.whole, whole.memory.whole)
    # What is only observed is remembered alike.
    seen = eqx.filter_jit(method.remember)(empty, states.features, states.first)
    np.testing.assert_allclose(seen.states, whole.memory.states, rtol=1e-6)


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
