"""Laws that hold for every credit method that is trained with the agent, as the paper's is.

That agents do not pay what such a method says of terminal states is tested with each agent; what
the unit of reward changes depends on the method's loss, and is tested with the method.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from synthetic_returns.agents.optimizers import adam
from synthetic_returns.credit.auxiliary import AgentStates, AuxiliaryMethod
from synthetic_returns.credit.paper.method import Paper
from synthetic_returns.credit.registry import find_method, method_names
from synthetic_returns.viewer.playing import play
from tests.credit.agent_states import make_states, part_of
from tests.credit.known_contributions import KINDS, LENGTH, TRUE, make_episodes
from tests.small import small_config, untrained

# Small enough for a test; a method that is not listed is taken as it comes.
SMALLER: dict[str, AuxiliaryMethod] = {"paper": Paper(sizes=(32, 32))}
AUXILIARY = [
    SMALLER.get(name, kind())
    for name, kind in ((name, find_method(name)) for name in method_names())
    if issubclass(kind, AuxiliaryMethod)
]
EACH = pytest.mark.parametrize("method", AUXILIARY, ids=lambda method: method.name)
# What is predicted may depend on the agent's core, which is cut with the unroll.
WITH_CORE: list[AuxiliaryMethod] = [Paper(sizes=(4, 4), current="core")]
FEATURES = KINDS + 1  # the kind of a state, and whether leaving it pays
UPDATES, BATCH = 200, 16


def states_of(observation: Any, reward: Any) -> AgentStates:
    """Episodes from their first to their last state; features tell the kind, and where it pays."""
    time = jnp.broadcast_to(jnp.arange(LENGTH + 1)[:, None], observation.shape[:2])
    pays = jnp.asarray(time == LENGTH - 1, jnp.float32)
    features = jnp.concatenate([observation, pays[..., None]], axis=-1)
    return AgentStates(features, features, time == 0, time == LENGTH, reward)


def batches(number: int, contribution: np.ndarray, noise: float) -> list[np.ndarray]:
    """Observations and rewards of episodes, a batch for each update."""
    episodes = make_episodes(0, number * BATCH, contribution, noise)
    both = (np.stack([getattr(e, name) for e in episodes]) for name in ("observation", "reward"))
    return [np.moveaxis(x.reshape(number, BATCH, *x.shape[1:]), 1, 2) for x in both]


@eqx.filter_jit
def train(method: AuxiliaryMethod, model: Any, data: list[np.ndarray]) -> Any:
    """The model after an update with each batch."""
    weights, rest = eqx.partition(model, eqx.is_inexact_array)
    empty, optimizer = method.start(BATCH, FEATURES, LENGTH), adam(5e-3)

    def loss(weights: Any, batch: Any) -> Any:
        return method.learn(eqx.combine(weights, rest), empty, states_of(*batch)).loss

    def update(carry: Any, batch: Any) -> Any:
        weights, state = carry
        change, state = optimizer.update(jax.grad(loss)(weights, batch), state)
        return (optax.apply_updates(weights, change), state), None

    (weights, _), _ = jax.lax.scan(update, (weights, optimizer.init(weights)), data)
    return eqx.combine(weights, rest)


def taught(method: AuxiliaryMethod, contribution: np.ndarray, noise: float) -> np.ndarray:
    """What a method pays for a state of each kind, after learning."""
    model = method.init(FEATURES, FEATURES, jax.random.key(0))
    model = train(method, model, batches(UPDATES, contribution, noise))
    return np.asarray(method.of_states(model, jnp.eye(KINDS, FEATURES)))


@EACH
def test_contributions_that_are_known_are_found(method):
    paid = taught(method, TRUE, 0.5)
    assert np.corrcoef(paid, TRUE)[0, 1] > 0.95


@EACH
def test_noise_earns_next_to_nothing(method):
    assert np.ptp(taught(method, np.zeros(KINDS), 1.0)) < 0.1


@pytest.mark.parametrize("method", [*AUXILIARY, *WITH_CORE], ids=lambda method: method.name)
def test_cutting_an_unroll_changes_no_credit_and_no_memory(method):
    states = make_states(12, 3)
    size, hidden_size = states.features.shape[-1], states.hidden.shape[-1]
    model = method.init(size, hidden_size, jax.random.key(0))
    empty = method.start(3, size, 4)
    learn = eqx.filter_jit(method.learn)
    whole = learn(model, empty, states)
    assert np.any(whole.reward)
    memory, rewards = empty, []
    for start in range(0, 12, 4):
        outcome = learn(model, memory, part_of(states, start, start + 4))
        memory = outcome.memory
        rewards.append(outcome.reward)
    np.testing.assert_allclose(np.concatenate(rewards), whole.reward, rtol=1e-5, atol=1e-6)
    # What is only observed is remembered alike.
    seen = eqx.filter_jit(method.remember)(empty, states.features, states.first)
    for other in (memory, seen):
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6), other, whole.memory)


@EACH
def test_nothing_is_learned_from_the_step_to_another_episode(method):
    states = make_states(8, 2)
    size, hidden_size = states.features.shape[-1], states.hidden.shape[-1]
    model = method.init(size, hidden_size, jax.random.key(0))
    learn = eqx.filter_jit(method.learn)
    paid = jnp.where(states.last[:-1], 100, states.reward)
    assert np.any(paid != states.reward)
    memory = method.start(2, size, 8)
    other = learn(model, memory, eqx.tree_at(lambda s: s.reward, states, paid))
    assert float(other.loss) == float(learn(model, memory, states).loss) > 0


@EACH
def test_terminal_states_are_explained_to_earn_nothing(method):
    config = small_config("paper", {"credit": method})
    agent, credit = untrained(config)
    played = play(config.task, agent, credit, 3)
    paid, last = np.asarray(played.explanation.paid), np.asarray(played.timestep.last)
    assert last.any()
    assert not np.any(paid[last])
    assert np.all(paid[~last])
