import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.envs.chain import Chain
from synthetic_returns.types import StepType


def run(env: Chain, actions: np.ndarray):
    """All steps but the first, ``[time, episodes]``, of one episode per row of actions."""
    state, _ = env.reset(jax.random.key(0))

    def episode(actions):
        return jax.lax.scan(env.step, state, actions)[1]

    return jax.jit(jax.vmap(episode, out_axes=1))(jnp.asarray(actions, jnp.int32))


@pytest.mark.parametrize(("free_moves", "chance"), [(7, 2 / 256), (8, 2 / 256), (10, 22 / 1024)])
def test_chance_of_a_random_policy_exactly(free_moves, chance):
    """Every sequence of actions is equally likely, so the mean over all of them is exact."""
    env = Chain(free_moves=free_moves)
    moves = np.array(list(itertools.product((0, 1), repeat=free_moves)))
    actions = np.concatenate([moves, np.ones((len(moves), 2), int)], axis=1)
    steps = run(env, actions)
    assert float(jnp.mean(jnp.sum(steps.reward, axis=0))) == chance
    visited = np.any(np.cumsum(2 * moves - 1, axis=1) == 7, axis=1)
    np.testing.assert_array_equal(steps.reward[-1] == 1, visited)


def test_an_episode_step_by_step():
    """Eight moves right, the jump, and the step that leaves the outcome and pays."""
    steps = jax.tree.map(lambda x: np.asarray(x)[:, 0], run(Chain(), np.ones((1, 10), int)))
    assert steps.observation.argmax(axis=1).tolist() == [9, 10, 11, 12, 13, 14, 15, 16, 17, 17]
    assert steps.observation.sum(axis=1).tolist() == [1.0] * 10
    assert steps.reward.tolist() == [0.0] * 9 + [1.0]
    assert steps.discount.tolist() == [1.0] * 8 + [0.0, 0.0]
    assert steps.step_type.tolist() == [StepType.MID] * 9 + [StepType.LAST]
    assert steps.events["trigger"].tolist() == [0.0] * 6 + [1.0] + [0.0] * 3
    assert steps.events["success"].tolist() == [0.0] * 9 + [1.0]


def test_the_outcome_looks_the_same_whether_it_pays_or_not():
    steps = run(Chain(), np.array([[1] * 10, [0] * 10]))
    assert steps.reward[-1].tolist() == [1, 0]
    np.testing.assert_array_equal(steps.observation[-2:, 0], steps.observation[-2:, 1])


def test_the_trigger_counts_once_and_the_ends_hold_the_agent():
    env = Chain(length=5, trigger=2, free_moves=6)
    steps = run(env, np.array([[1, 1, 1, 0, 1, 1, 0, 0]]))
    assert steps.observation.argmax(axis=-1)[:6, 0].tolist() == [3, 4, 4, 3, 4, 4]
    assert steps.events["trigger"][:, 0].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"length": 16}, "length=16 has no centre"),
        ({"length": -3}, "length=-3"),
        ({"trigger": 9}, "trigger=9 lies outside the chain: with length=17 it must be 1 to 8"),
        ({"trigger": 0}, "trigger=0"),
        ({"free_moves": 6}, "free_moves=6 can never reach the trigger 7"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        Chain(**parameters)
