"""What the agent is paid, for numpy and for JAX alike."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.reward_mix import RewardMix

MIX = RewardMix(alpha=0.5, beta=2.0, last_reward=0.25)
REWARD = np.array([1.0, 2.0, 4.0], np.float32)
CREDIT = np.array([10.0, 0.0, -2.0], np.float32)
LAST = np.array([False, False, True])


def test_by_hand():
    """The last: 0.5 * -2 + 2 * 0.25 * 4 = 1."""
    mixed = MIX.augmented(REWARD, CREDIT, LAST)
    assert isinstance(mixed, np.ndarray)
    assert mixed.dtype == np.float32
    np.testing.assert_array_equal(mixed, [7.0, 4.0, 1.0])
    on_device = MIX.augmented(jnp.asarray(REWARD), jnp.asarray(CREDIT), jnp.asarray(LAST))
    assert isinstance(on_device, jax.Array)
    np.testing.assert_array_equal(on_device, mixed)


def test_nobody_learns_through_credit():
    def total(credit):
        return MIX.augmented(jnp.asarray(REWARD), credit, jnp.asarray(LAST)).sum()

    np.testing.assert_array_equal(jax.grad(total)(jnp.asarray(CREDIT)), 0)


@pytest.mark.parametrize("name", ["alpha", "beta", "scale", "last_reward"])
def test_weights_are_finite(name):
    with pytest.raises(ValueError, match=f"{name} is nan; it must be a finite number"):
        RewardMix(**{name: float("nan")})
