"""One update of R2D2: the burn-in, the loss, the target network, what acts."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.agents.r2d2.learner import Learner, action_values, states_behind
from synthetic_returns.agents.r2d2.settings import BanditSettings
from synthetic_returns.agents.replay.sequences import Past
from synthetic_returns.credit.method import Assignment
from synthetic_returns.credit.paper.association import associate
from synthetic_returns.credit.paper.method import Paper
from synthetic_returns.nn.q_network import QNetwork
from synthetic_returns.types import StepType, TimeStep, Trajectory
from tests.agents.test_r2d2_targets import slow_targets
from tests.small import small_config
from tests.trees import arrays

BATCH, LENGTH, BURN_IN = 3, 7, 4


def make_config(settings=None, /, lstm_size=4):
    own = {"agent.burn_in": BURN_IN, "agent.sequence_length": LENGTH, "agent.lstm_size": lstm_size}
    return small_config("none", {**own, **(settings or {})}, agent="r2d2")


def make_sequences(config, network, seed=0):
    """Random steps with episode ends, cut-offs and beginnings in them."""
    rng = np.random.default_rng(seed)
    shape = (BURN_IN + LENGTH + 1, BATCH)
    kind = np.full(shape, StepType.MID)
    kind[2, 0], kind[3, 0] = StepType.LAST, StepType.FIRST
    kind[6, 1], kind[7, 1] = StepType.LAST, StepType.FIRST
    kind[8, 2], kind[9, 2] = StepType.LAST, StepType.FIRST
    discount = np.ones(shape)
    discount[6, 1] = 0  # terminated; the episode in the last column was cut off
    core = jax.tree.map(
        lambda x: jnp.asarray(rng.normal(size=x.shape), x.dtype), network.initial_state(BATCH)
    )
    return Trajectory(
        timestep=TimeStep(
            step_type=jnp.asarray(kind, jnp.int8),
            reward=jnp.asarray(rng.normal(size=shape), jnp.float32),
            discount=jnp.asarray(discount, jnp.float32),
            observation=jnp.asarray(
                rng.random((*shape, *config.task.observation_shape)), jnp.float32
            ),
            events={},
        ),
        action=jnp.asarray(rng.integers(0, 2, (shape[0] - 1, BATCH)), jnp.int32),
        logits=jnp.zeros((shape[0] - 1, BATCH, 2)),
        value=jnp.zeros((shape[0] - 1, BATCH)),
        core=core,
    )


def q_network(state):
    network = state.agent.network
    assert isinstance(network, QNetwork)
    return network


def test_a_burn_in_gives_the_values_of_a_full_unroll():
    config = make_config()
    network = q_network(Learner(config).init(jax.random.key(0)))
    trajectory = make_sequences(config, network)
    whole = action_values(network, trajectory, 0)
    found = action_values(network, trajectory, BURN_IN)
    np.testing.assert_allclose(found, whole[BURN_IN:], rtol=1e-5, atol=1e-6)
    # It matters: from the stored state without the burn-in, values are others.
    late = dataclasses.replace(
        trajectory, timestep=jax.tree.map(lambda x: x[BURN_IN:], trajectory.timestep)
    )
    assert np.abs(action_values(network, late, 0) - found)[0].max() > 1e-3


def test_no_gradient_goes_through_the_burn_in():
    config = make_config()
    network = q_network(Learner(config).init(jax.random.key(0)))
    trajectory = make_sequences(config, network)

    def total(observation):
        timestep = dataclasses.replace(trajectory.timestep, observation=observation)
        moved = dataclasses.replace(trajectory, timestep=timestep)
        return jnp.sum(action_values(network, moved, BURN_IN))

    gradient = jax.grad(total)(trajectory.timestep.observation)
    assert not np.any(gradient[:BURN_IN])
    assert np.any(gradient[BURN_IN:])


@pytest.mark.parametrize("with_credit", [False, True])
def test_the_loss_is_that_of_the_paper(with_credit):
    settings = {"agent.n_step": 3, "agent.discount": 0.8, "reward.scale": 2.0, "reward.alpha": 0.5}
    config = make_config(settings)
    learner = Learner(config)
    state = learner.init(jax.random.key(0))
    target = learner.init(jax.random.key(1)).target
    trajectory = make_sequences(config, state.agent.network)
    weight = jnp.asarray([1.0, 0.5, 0.25])
    credit = jnp.asarray(np.random.default_rng(2).normal(size=(BURN_IN + LENGTH, BATCH)), "float32")
    assignment = Assignment(credit) if with_credit else None
    loss, (_, priority) = learner.loss(state.agent, target, trajectory, assignment, weight)

    q = np.asarray(action_values(q_network(state), trajectory, BURN_IN), np.float64)
    q_target = np.asarray(action_values(target, trajectory, BURN_IN), np.float64)
    timestep = jax.tree.map(lambda x: np.asarray(x)[BURN_IN:], trajectory.timestep)
    last = timestep.step_type == StepType.LAST
    paid = timestep.reward[1:] + (0.5 * np.asarray(credit)[BURN_IN:] if with_credit else 0)
    targets = slow_targets(
        q[1:], q_target[1:], 2 * paid, 0.8 * timestep.discount[1:], last[1:], 3, True
    )
    total, count = 0.0, 0
    for b in range(BATCH):
        errors = []
        for t in range(LENGTH):
            if not last[t, b]:
                error = targets[t, b] - q[t, b, int(trajectory.action[BURN_IN + t, b])]
                errors.append(abs(error))
                total += 0.5 * float(weight[b]) * error**2
                count += 1
        want = 0.9 * max(errors) + 0.1 * np.mean(errors)
        np.testing.assert_allclose(priority[b], want, rtol=1e-4)
    np.testing.assert_allclose(loss, total / count, rtol=1e-4)


def test_the_paper_s_method_sees_the_episodes_so_far():
    """Its loss on a sequence is that of IMPALA's learner, which has followed all the steps."""
    method = Paper(sizes=(8, 8))
    config = make_config({"credit": method, "reward.scale": 2.0})
    learner = Learner(config)
    state = learner.init(jax.random.key(0))
    agent = state.agent
    sequences = make_sequences(config, agent.network)
    # The sequence begins in the middle of an episode whose first step is not, or is, in the past.
    rng = np.random.default_rng(5)
    history = 6
    seen = jnp.asarray(rng.random((history, BATCH, *config.task.observation_shape)), jnp.float32)
    first = np.zeros((history, BATCH), bool)
    first[-2, 1] = True
    past = Past(seen, jnp.asarray(first))
    timestep = sequences.timestep
    # As it comes to IMPALA: step after step, from before the past on.
    features = agent.network.torso(jnp.concatenate([seen, timestep.observation]))
    starts = jnp.concatenate([past.first, timestep.first])
    memory = method.start(BATCH, features.shape[-1], config.task.max_episode_steps)
    remember = eqx.filter_jit(method.remember)
    for t in range(history + BURN_IN):
        memory = remember(memory, features[t : t + 2], starts[t : t + 2])
    np.testing.assert_array_equal(memory.whole, [True, True, False])
    found = eqx.filter_jit(learner.memory)(q_network(state), sequences, past)
    for (path, one), two in zip(arrays(memory).items(), arrays(found).values(), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6, err_msg=path)
    association = eqx.filter_jit(associate)(
        agent.credit,
        memory,
        features[history + BURN_IN : -1],
        starts[history + BURN_IN : -1],
        2 * timestep.reward[BURN_IN + 1 :],
        valid=~timestep.last[BURN_IN:-1],
    )
    target, weight = learner.init(jax.random.key(1)).target, jnp.ones(BATCH)
    gradient_of = eqx.filter_jit(eqx.filter_grad(learner.loss, has_aux=True))
    grads, (metrics, _) = gradient_of(agent, target, sequences, None, weight, past)
    np.testing.assert_allclose(metrics["loss/credit"], association.loss, rtol=1e-5)
    assert metrics["loss/total"] > metrics["loss/credit"]
    for path, gradient in arrays(grads.credit).items():
        assert np.any(gradient), path
    # The agent is paid for each state it arrives in what c says of it.
    c = np.asarray(agent.credit.contribution(features))[history + BURN_IN + 1 :]
    kind = np.asarray(timestep.step_type)[BURN_IN:]
    ends = (kind[1:] == StepType.LAST) | (kind[:-1] == StepType.LAST)
    paid = 2 * np.asarray(timestep.reward)[BURN_IN + 1 :] * config.reward.beta
    paid = paid + config.reward.alpha * np.where(ends, 0, c)
    valid = kind[:-1] != StepType.LAST
    np.testing.assert_allclose(metrics["reward/augmented"], paid[valid].mean(), rtol=1e-4)


def test_with_a_bandit_every_discount_learns_from_every_sequence():
    """The loss is the mean of those of single discounts, each with action values of its own."""
    bandit = BanditSettings(arms=3, least_discount=0.5)
    config = make_config({"agent.bandit": bandit, "agent.n_step": 3, "agent.discount": 0.875})
    learner = Learner(config)
    state = learner.init(jax.random.key(0))
    target = learner.init(jax.random.key(1)).target
    trajectory = make_sequences(config, state.agent.network)
    weight = jnp.asarray([1.0, 0.5, 0.25])
    loss, (_, priority) = eqx.filter_jit(learner.loss)(
        state.agent, target, trajectory, None, weight
    )
    timestep = jax.tree.map(lambda x: np.asarray(x)[BURN_IN:], trajectory.timestep)
    last = timestep.step_type == StepType.LAST
    action = np.asarray(trajectory.action)[BURN_IN:]
    errors = np.zeros((3, LENGTH, BATCH))
    for arm, discount in enumerate([0.5, 0.75, 0.875]):
        q, q_target = (
            np.asarray(network.family(states_behind(network, trajectory, BURN_IN)[1]))[:, :, arm]
            for network in (q_network(state), target)
        )
        targets = slow_targets(
            q[1:], q_target[1:], timestep.reward[1:], discount * timestep.discount[1:],
            last[1:], 3, True,
        )  # fmt: skip
        errors[arm] = targets - np.take_along_axis(q[:-1], action[..., None], axis=-1)[..., 0]
    valid = ~last[:-1]
    weighted = 0.5 * np.asarray(weight) * errors**2
    np.testing.assert_allclose(loss, weighted[:, valid].mean(), rtol=1e-4)
    size = np.where(valid, np.abs(errors), 0)
    each = 0.9 * size.max(1) + 0.1 * size.sum(1) / valid.sum(0)
    np.testing.assert_allclose(priority, each.mean(0), rtol=1e-4)


def test_with_a_bandit_environments_act_by_the_values_of_their_arms():
    config = make_config({"agent.bandit.arms": 3, "agent.epsilon": 0.5, "agent.epsilon_alpha": 1.0})
    learner = Learner(config)
    network = q_network(learner.init(jax.random.key(0)))
    arm = jnp.asarray([2, 0, 1, 2], jnp.int32)
    acting: Any = learner.behaviour(network, 4, arm=arm)
    np.testing.assert_allclose(acting.epsilon, [0.25, 0.5, 0.5**1.5, 0.25], rtol=1e-5)
    hidden = jax.random.normal(jax.random.key(3), (4, network.hidden_size))
    family = np.asarray(network.family(hidden))
    assert family.shape == (4, 3, 2)
    np.testing.assert_array_equal(acting.q(hidden), family[np.arange(4), np.asarray(arm)])
    np.testing.assert_array_equal(network.q(hidden), family[:, -1])  # in evaluation


def test_the_target_network_is_copied_now_and_then():
    config = make_config({"agent.target_period": 2})
    learner = Learner(config)
    state = learner.init(jax.random.key(0))
    trajectory, weight = make_sequences(config, state.agent.network), jnp.ones(BATCH)
    update = eqx.filter_jit(learner.update)
    for count in range(1, 5):
        before = state.target
        state, metrics, _ = update(state, trajectory, None, weight)
        now = state.agent.network if count % 2 == 0 else before
        for (path, one), two in zip(
            arrays(now).items(), arrays(state.target).values(), strict=True
        ):
            np.testing.assert_array_equal(one, two, err_msg=path)
        assert metrics["grad_norm"] > 0
    assert state.updates == 4


def test_every_stream_explores_on_rungs_of_its_own():
    config = make_config({"agent.epsilon": 0.5, "agent.epsilon_alpha": 3.0})
    learner = Learner(config)
    network = q_network(learner.init(jax.random.key(0)))
    of_streams: Any = [learner.behaviour(network, 4, n, 2).epsilon for n in (0, 1)]
    together = np.sort(np.concatenate(of_streams))[::-1]
    everyone: Any = learner.behaviour(network, 8).epsilon
    np.testing.assert_allclose(together, everyone, rtol=1e-6)
    hidden = jnp.ones((4, network.hidden_size))
    exploring = jnp.exp(learner.behaviour(network, 4).heads(hidden)[0])
    np.testing.assert_allclose(exploring.sum(axis=-1), 1, rtol=1e-5)
    np.testing.assert_allclose(
        exploring.min(axis=-1), [0.5 ** (1 + i) / 2 for i in range(4)], rtol=1e-4
    )
    np.testing.assert_allclose(
        jnp.exp(network.heads(hidden)[0]).min(axis=-1), 0.5**4 / 2, rtol=1e-4
    )
