import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.nn.exploring import ExploringNetwork
from synthetic_returns.nn.networks import AgentNetwork, MlpTorso

EPSILON = (0.0, 0.3, 1.0)


@pytest.fixture(scope="module")
def network() -> AgentNetwork:
    key = jax.random.key(0)
    torso = MlpTorso((4,), (8,), key=key)
    return AgentNetwork(torso, 8, lstm_size=0, policy_size=8, num_actions=3, key=key)


@pytest.mark.parametrize("greedy", [False, True])
def test_the_policy_is_mixed_with_random_actions(network, greedy):
    hidden = 3 * jax.random.normal(jax.random.key(1), (3, 8))
    logits, value = network.heads(hidden)
    mixed, same_value = ExploringNetwork(network, jnp.array(EPSILON), greedy=greedy).heads(hidden)
    np.testing.assert_array_equal(value, same_value)
    for row, epsilon in enumerate(EPSILON):
        policy = np.exp(np.asarray(logits[row], np.float64))
        policy /= policy.sum()
        if greedy:
            policy = np.eye(3)[np.argmax(policy)]
        wanted = (1 - epsilon) * policy + epsilon / 3
        np.testing.assert_allclose(np.exp(jax.nn.log_softmax(mixed[row])), wanted, atol=1e-6)
    if not greedy:  # without exploration the very same numbers, so the very same actions
        np.testing.assert_array_equal(mixed[0], logits[0])
    assert np.isfinite(mixed).all()
