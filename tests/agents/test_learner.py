"""The learner: what an unroll teaches, and what it must not."""

import functools
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.agents.impala.learner import Learner
from synthetic_returns.agents.impala.settings import ImpalaSettings
from synthetic_returns.config import Config
from synthetic_returns.credit.episodic.method import Episodic
from synthetic_returns.credit.method import Assignment
from synthetic_returns.credit.none import NoCredit
from synthetic_returns.credit.paper.method import Paper
from synthetic_returns.credit.reward_mix import RewardMix
from synthetic_returns.engines.settings import FusedSettings
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import StepType, TimeStep, Trajectory
from tests.acting.counting import ACTIONS, CountingEnv

TIME, BATCH = 9, 2
LAST = 4  # where the first episode of the unrolls below ends

ENTROPY_COST = jnp.asarray(0.01)
SMALL: dict[str, Any] = {
    "engine": FusedSettings(num_envs=BATCH, unroll_length=TIME),
    "agent": ImpalaSettings(torso=TorsoSettings(sizes=(6,)), lstm_size=4, policy_size=5),
    "credit": Paper(sizes=(5, 5)),
    "reward": RewardMix(alpha=0.5),
}
NO_CREDIT = {"credit": NoCredit()}


def make_config(settings: Mapping[str, Any] | None = None, /) -> Config:
    config = Config(task_name="counting", task=CountingEnv(), **SMALL)
    return config.changed(settings)


def make_arrays(seed=0) -> dict[str, np.ndarray]:
    """An off-policy unroll in which an episode ends and the next begins.

    The first row is terminated, the second truncated.
    """
    rng = np.random.default_rng(seed)
    step_type = np.full((TIME + 1, BATCH), StepType.MID, np.int8)
    step_type[LAST], step_type[LAST + 1] = StepType.LAST, StepType.FIRST
    discount = np.ones((TIME + 1, BATCH), np.float32)
    discount[LAST, 0] = 0
    reward = rng.normal(size=(TIME + 1, BATCH)).astype(np.float32)
    reward[LAST + 1] = 0
    return {
        "step_type": step_type,
        "discount": discount,
        "reward": reward,
        "observation": rng.normal(size=(TIME + 1, BATCH, 3)).astype(np.float32),
        "action": rng.integers(ACTIONS, size=(TIME, BATCH)).astype(np.int32),
        "logits": rng.normal(size=(TIME, BATCH, ACTIONS)).astype(np.float32),
    }


def make_trajectory(arrays, core) -> Trajectory:
    arrays = {name: jnp.asarray(x) for name, x in arrays.items()}
    action, logits = arrays.pop("action"), arrays.pop("logits")
    value = jnp.zeros(action.shape)
    return Trajectory(TimeStep(**arrays, events={}), action, logits, value, core)


def gradients(config, arrays):
    """Of the parameters, and of the observations: what each step of the unroll teaches."""
    return _gradients(Learner(config), Learner(config).init(jax.random.key(0)), arrays)


@eqx.filter_jit
def _gradients(learner, state, arrays):
    def loss(agent_and_observation):
        agent, observation = agent_and_observation
        core = agent.network.initial_state(BATCH)
        trajectory = make_trajectory(arrays | {"observation": observation}, core)
        return learner.loss(agent, state.memory, trajectory, None, ENTROPY_COST)[0]

    return eqx.filter_grad(loss)((state.agent, jnp.asarray(arrays["observation"])))


_update = eqx.filter_jit(lambda learner, *given: learner.update(*given))


def updating(learner):
    """Its update; compiled once for all learners with the same settings."""
    return functools.partial(_update, learner)


def changed(arrays, **changes):
    """A copy in which ``name=(index, value)`` has been set."""
    copies = {name: x.copy() for name, x in arrays.items()}
    for name, (index, value) in changes.items():
        copies[name][index] = value
    return copies


def assert_same(one, two):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), one, two)


def differ(one, two):
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    return any(not np.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in pairs)


@pytest.mark.parametrize("settings", [{}, NO_CREDIT, {"credit.two_stage": True}])
def test_the_step_from_one_episode_to_the_next_teaches_nothing(settings):
    config, arrays = make_config(settings), make_arrays()
    junk = {
        "action": (arrays["action"] + 1) % ACTIONS,
        "logits": arrays["logits"] + [5, 0, -5],
        "reward": arrays["reward"] + 100,
        "discount": 1 - arrays["discount"],
    }

    def spoiled(source):
        """Everything about the transition out of this step, and the reward and discount of it."""
        return changed(
            arrays,
            action=(source, junk["action"][source]),
            logits=(source, junk["logits"][source]),
            reward=(source + 1, junk["reward"][source + 1]),
            discount=(source + 1, junk["discount"][source + 1]),
        )

    want = gradients(config, arrays)
    assert not np.any(want[1][LAST])
    assert_same(gradients(config, spoiled(LAST)), want)
    assert differ(gradients(config, spoiled(LAST - 1)), want)
    assert differ(gradients(config, spoiled(LAST + 1)), want)


def test_an_agent_begins_with_its_action_prior():
    config = make_config({"agent.action_prior": 0.9, "agent.lstm_size": 0})
    network = Learner(config).init(jax.random.key(0)).agent.network
    logits, _ = network.heads(network.torso(jnp.asarray(make_arrays()["observation"])))
    pi = np.asarray(jax.nn.softmax(logits)).mean(axis=(0, 1))
    assert 0.8 < pi[0] < 0.97
    with pytest.raises(ValueError, match=r"action_prior is 1.0; it is a probability"):
        make_config({"agent.action_prior": 1.0})


def scaled_rewards(arrays, factor):
    return arrays | {"reward": (factor * arrays["reward"]).astype(np.float32)}


@pytest.mark.parametrize("settings", [{}, NO_CREDIT, {"credit.two_stage": True}])
def test_the_scale_of_rewards_is_a_change_of_units(settings):
    arrays = make_arrays()
    want = gradients(make_config(settings), scaled_rewards(arrays, 3))
    assert_same(gradients(make_config({"reward.scale": 3.0, **settings}), arrays), want)
    assert differ(gradients(make_config(settings), arrays), want)


def credited_gradient(arrays, c_t, settings=None):
    """With synthetic returns from elsewhere."""
    config = make_config({"credit": Episodic(), **(settings or {})})
    learner, state = Learner(config), Learner(config).init(jax.random.key(0))
    assignment = Assignment(reward=c_t)

    @eqx.filter_jit
    def gradient(agent):
        trajectory = make_trajectory(arrays, agent.network.initial_state(BATCH))
        return eqx.filter_grad(
            lambda agent: learner.loss(agent, None, trajectory, assignment, ENTROPY_COST)[0]
        )(agent)

    return gradient(state.agent)


def test_synthetic_returns_are_in_units_of_the_reward():
    arrays, c_t = make_arrays(), jax.random.normal(jax.random.key(1), (TIME, BATCH))
    want = credited_gradient(scaled_rewards(arrays, 3), 3 * c_t)
    assert_same(credited_gradient(arrays, c_t, {"reward.scale": 3.0}), want)


def test_the_last_reward_need_not_be_paid_where_it_was_earned_before():
    arrays, c_t = make_arrays(), jnp.zeros((TIME, BATCH))
    unpaid = changed(arrays, reward=(LAST, 0.0))
    want = credited_gradient(unpaid, c_t)
    assert_same(credited_gradient(arrays, c_t, {"reward.last_reward": 0.0}), want)
    assert differ(credited_gradient(arrays, c_t), want)
    # Without synthetic returns nothing has paid it.
    assert_same(
        gradients(make_config({"credit": NoCredit(), "reward.last_reward": 0.0}), arrays),
        gradients(make_config(NO_CREDIT), arrays),
    )


@pytest.mark.parametrize("truncated", [True, False])
def test_truncation_bootstraps_and_termination_does_not(truncated):
    """The value of the terminal observation counts only if the episode was cut off."""
    config = make_config(NO_CREDIT)
    arrays = changed(make_arrays(), discount=(LAST, 1 if truncated else 0))
    other_end = changed(arrays, observation=(LAST, 3.0))
    same_steps = np.r_[0:LAST]
    one, two = (gradients(config, case)[1][same_steps] for case in (arrays, other_end))
    assert differ(one, two) == truncated


@pytest.mark.parametrize("blocked", [True, False])
def test_a_blocked_backup_is_honoured(blocked):
    """Behind a discount of 0 in mid-episode, as in the Chain, rewards teach nothing before it."""
    config = make_config({"credit": NoCredit(), "agent.lstm_size": 0})
    arrays = changed(make_arrays(), discount=(2, 0 if blocked else 1))
    later_reward = changed(arrays, reward=(3, 50.0))
    one, two = (gradients(config, case)[1] for case in (arrays, later_reward))
    assert differ(one[:2], two[:2]) == (not blocked)
    assert differ(one[2], two[2])


def test_synthetic_returns_pass_a_blocked_backup():
    """They arrive with the state that earned them, so the step before it learns."""
    arrays = changed(make_arrays(), discount=(2, 0))
    one, two = (
        gradients(make_config({"agent.lstm_size": 0, "reward.alpha": alpha}), arrays)[1]
        for alpha in (0.0, 5.0)
    )
    assert differ(one[:2], two[:2])


def test_without_sr_equals_sr_that_is_weighted_with_nothing():
    arrays = make_arrays()
    baseline = gradients(make_config(NO_CREDIT), arrays)
    weightless = gradients(make_config({"credit.cost": 0.0, "reward.alpha": 0.0}), arrays)
    assert_same(weightless[0].network, baseline[0].network)
    assert baseline[0].credit is None
    assert differ(gradients(make_config(), arrays)[0].network, baseline[0].network)


def test_arriving_in_a_state_earns_its_contribution():
    """The agent's own c, of the states arrived in, acts like the same c from elsewhere."""
    arrays = make_arrays()
    config = make_config({"credit.cost": 0.0})
    learner = Learner(config)
    state = learner.init(jax.random.key(0))
    agent, core = state.agent, state.agent.network.initial_state(BATCH)
    without = eqx.tree_at(lambda a: a.credit, agent, None)

    @eqx.filter_jit
    def both():
        assert agent.credit is not None
        trajectory = make_trajectory(arrays, core)
        c = agent.credit.contribution(agent.network.torso(trajectory.timestep.observation))
        own, _ = learner.loss(agent, state.memory, trajectory, None, ENTROPY_COST)
        # Arriving in a terminal state earns nothing.
        elsewhere = Assignment(reward=jnp.where(trajectory.timestep.last[1:], 0, c[1:]))
        given, _ = learner.loss(without, None, trajectory, elsewhere, ENTROPY_COST)
        return own, given

    own, given = both()
    assert own == pytest.approx(float(given), rel=1e-5)


def test_credit_from_elsewhere_is_added_to_the_reward():
    """``alpha * c_t + beta * r_t`` of the destination, for instance c_t = 2 with alpha 0.5."""
    arrays = make_arrays()
    config = make_config({"credit": Episodic(), "reward.beta": 0.25})
    learner = Learner(config)
    state = learner.init(jax.random.key(0))
    assert state.memory is state.agent.credit is None
    core = state.agent.network.initial_state(BATCH)
    assignment = Assignment(reward=jnp.full((TIME, BATCH), 2.0))

    @eqx.filter_jit
    def loss(learner, arrays, assignment):
        trajectory = make_trajectory(arrays, core)
        return learner.loss(state.agent, None, trajectory, assignment, ENTROPY_COST)[0]

    by_hand = changed(arrays, reward=(slice(1, None), 0.25 * arrays["reward"][1:] + 0.5 * 2))
    want = loss(Learner(config.changed(NO_CREDIT)), by_hand, None)
    assert loss(learner, arrays, assignment) == pytest.approx(float(want), rel=1e-5)


def advantage_gradients(arrays, advantage, settings=None):
    """Of the agent and of the advantages, with those of all actions from elsewhere."""
    config = make_config({"credit": Episodic(), "agent.lstm_size": 0, **(settings or {})})
    learner, state = Learner(config), Learner(config).init(jax.random.key(0))

    @eqx.filter_jit
    def gradient(agent, advantage):
        def loss(agent_and_advantage):
            agent, advantage = agent_and_advantage
            credit = Assignment(advantage=advantage)
            return learner.loss(agent, None, make_trajectory(arrays, None), credit, jnp.zeros(()))

        return eqx.filter_grad(loss, has_aux=True)((agent, advantage))[0]

    return gradient(state.agent, jnp.asarray(advantage)), state.agent


def make_advantage():
    return np.random.default_rng(5).normal(size=(TIME, BATCH, ACTIONS)).astype(np.float32)


def test_advantages_from_elsewhere_move_the_policy():
    """By hand: d/d logit of sum(pi * advantage) is pi * (advantage - its mean under pi)."""
    arrays, advantage = make_arrays(), make_advantage()
    (grads, of_advantage), agent = advantage_gradients(arrays, advantage, {"reward.scale": 3.0})
    assert not np.any(of_advantage)
    observation = jnp.asarray(arrays["observation"][:-1])
    logits, _ = agent.network.heads(agent.network.torso(observation))
    pi, valid = np.asarray(jax.nn.softmax(logits)), np.arange(TIME) != LAST
    mean = np.sum(pi * advantage, axis=-1, keepdims=True)
    by_hand = np.sum((pi * (advantage - mean))[valid], axis=(0, 1))
    # In units of the reward, like all credit; and a loss falls where the gain rises.
    np.testing.assert_allclose(grads.network.policy_logits.bias, -3 * by_hand, rtol=1e-4, atol=1e-6)
    # What was done does not matter to it.
    others = arrays | {"action": (arrays["action"] + 1) % ACTIONS}
    (same, _), _ = advantage_gradients(others, advantage, {"reward.scale": 3.0})
    assert_same(same.network.policy_logits, grads.network.policy_logits)


def test_values_are_learned_from_rewards_beside_given_advantages():
    arrays = make_arrays()
    (grads, _), _ = advantage_gradients(arrays, make_advantage())
    own, _ = gradients(make_config({"credit": NoCredit(), "agent.lstm_size": 0}), arrays)
    assert np.any(grads.network.value.weight)
    assert_same(grads.network.value, own.network.value)
    assert differ(grads.network.policy_logits, own.network.policy_logits)


def test_an_advantage_of_the_step_into_the_next_episode_teaches_nothing():
    arrays, advantage = make_arrays(), make_advantage()
    want = advantage_gradients(arrays, advantage)[0]
    for source in (LAST - 1, LAST, LAST + 1):
        spoiled = advantage.copy()
        spoiled[source] += [50, 0, -50]
        got = advantage_gradients(arrays, spoiled)[0]
        assert differ(got, want) == (source != LAST)


@pytest.mark.parametrize("kind", ["reward", "advantage"])
def test_credit_from_elsewhere_is_cut_with_its_batch(kind):
    credit = Assignment(
        **{kind: jnp.asarray(make_advantage() if kind == "advantage" else make_advantage()[..., 0])}
    )
    found = []
    for parts in (1, 2):
        learner = Learner(make_config({"credit": Episodic(), "engine.accumulate": parts}))
        state = learner.init(jax.random.key(0))
        trajectory = make_trajectory(make_arrays(), state.agent.network.initial_state(BATCH))
        state, metrics = updating(learner)(state, trajectory, credit)
        found.append((eqx.filter(state, eqx.is_array), metrics["grad_norm"]))
    assert_same(*found)


def test_the_loss_is_a_sum_over_valid_transitions():
    """Twice the same episodes, twice the loss: IMPALA's epsilon is meant for sums."""
    config = make_config(NO_CREDIT)
    learner = Learner(config)
    state = learner.init(jax.random.key(0))
    arrays = make_arrays()
    twice = {name: np.concatenate([x, x], axis=1) for name, x in arrays.items()}

    @eqx.filter_jit
    def loss(arrays):
        core = state.agent.network.initial_state(arrays["reward"].shape[1])
        return learner.loss(state.agent, None, make_trajectory(arrays, core), None, ENTROPY_COST)

    (once, (_, metrics)), (double, _) = loss(arrays), loss(twice)
    assert double == pytest.approx(2 * float(once), rel=1e-5)
    # 9 transitions in each of 2 rows, less the one that leaves the end of an episode.
    mean = metrics["loss/policy"] + 0.5 * metrics["loss/value"] - 0.01 * metrics["policy/entropy"]
    assert once == pytest.approx(16 * float(mean), rel=1e-4)


def test_an_update_descends_and_fills_the_memory():
    config = make_config({"optimizer.learning_rate": 1e-3})
    learner = Learner(config)
    state = learner.init(jax.random.key(0))
    trajectory = make_trajectory(make_arrays(), state.agent.network.initial_state(BATCH))
    update = updating(learner)
    after, metrics = update(state, trajectory)
    assert after.memory is not None
    # Behind the start of the second episode, states LAST + 1 up to TIME - 1 were stored.
    np.testing.assert_array_equal(after.memory.steps, [TIME - 1 - LAST] * BATCH)
    assert metrics["grad_norm"] > 0
    losses = []
    for _ in range(40):
        state, metrics = update(eqx.tree_at(lambda s: s.memory, state, after.memory), trajectory)
        losses.append(float(metrics["loss/credit"]))
    assert losses[-1] < 0.9 * losses[0]


def test_the_entropy_cost_falls_over_the_run():
    config = make_config(
        {"agent.entropy_cost": 0.1, "agent.entropy_decay": 0.75, "steps": 4 * BATCH * TIME}
    )
    learner = Learner(config)
    state = learner.init(jax.random.key(0))
    trajectory = make_trajectory(make_arrays(), state.agent.network.initial_state(BATCH))
    update = updating(learner)
    costs = []
    for _ in range(6):
        costs.append(float(learner.entropy_cost(state.updates)))
        state, metrics = update(state, trajectory)
        parts = (
            metrics["loss/policy"] + 0.5 * metrics["loss/value"] + metrics["loss/credit"]
        ) - costs[-1] * metrics["policy/entropy"]
        assert metrics["loss/total"] == pytest.approx(float(parts), rel=1e-5)
    assert costs == pytest.approx([0.1, 0.08125, 0.0625, 0.04375, 0.025, 0.025])


@pytest.mark.parametrize(
    "settings", [{}, NO_CREDIT, {"agent.lstm_size": 0, "credit.two_stage": True}]
)
def test_a_batch_in_parts_teaches_what_it_teaches_at_once(settings):
    """One row has fewer valid transitions, so a mean over the parts would be another number."""
    arrays = make_arrays()
    arrays["step_type"][1:3, 1] = StepType.LAST, StepType.FIRST
    arrays["step_type"][7:9, 1] = StepType.LAST, StepType.FIRST
    found = []
    for parts in (1, 2):
        learner = Learner(make_config({"engine.accumulate": parts, **settings}))
        state = learner.init(jax.random.key(0))
        trajectory = make_trajectory(arrays, state.agent.network.initial_state(BATCH))
        update = updating(learner)
        state, _ = update(state, trajectory)
        state, metrics = update(state, trajectory)  # with a memory that is not empty
        found.append((eqx.filter(state, eqx.is_array), metrics["grad_norm"]))
    assert_same(*found)


def found_over_devices(learner, state, trajectory):
    """The metrics of an update whose two rows are on two devices; vmap stands in for them."""
    rows = jax.tree.map(lambda x: jnp.moveaxis(x, 1, 0)[:, :, None], trajectory)
    rows = eqx.tree_at(lambda t: t.core, rows, jax.tree.map(lambda x: x[:, None], trajectory.core))
    memories = jax.tree.map(lambda x: x[:, None], state.memory)

    def update(memory, row):
        return learner.update(eqx.tree_at(lambda s: s.memory, state, memory), row)[1]

    return jax.jit(jax.vmap(update, axis_name="rows"))(memories, rows)


@pytest.mark.parametrize("spread", ["parts", "devices"])
def test_a_largest_value_is_the_largest_of_all_parts(spread):
    """The rows are unlike each other, so a mean over them would be another number."""
    learner = Learner(make_config())
    state = learner.init(jax.random.key(0))
    trajectory = make_trajectory(make_arrays(), state.agent.network.initial_state(BATCH))
    _, whole = updating(learner)(state, trajectory)
    if spread == "parts":
        update = updating(Learner(make_config({"engine.accumulate": 2})))
        _, found = update(state, trajectory)
    else:
        found = found_over_devices(Learner(make_config(), axis="rows"), state, trajectory)
    for name in ("policy/ratio_max", "credit/gate_max"):
        np.testing.assert_allclose(found[name], whole[name], rtol=1e-5, err_msg=name)
    # All others are means: this one is the same however the rows are spread.
    np.testing.assert_allclose(found["reward/augmented"], whole["reward/augmented"], rtol=1e-4)


def test_an_unroll_can_be_learned_from_several_times():
    """As often as so many updates from the same memory; and the step size falls as slowly."""
    shared: dict[str, Any] = {"optimizer.anneal": True, "optimizer.learning_rate": 1e-2}
    thrice = Learner(make_config({"agent.epochs": 3, "steps": 2 * BATCH * TIME, **shared}))
    once = Learner(make_config({"steps": 6 * BATCH * TIME, **shared}))
    start = once.init(jax.random.key(0))
    trajectory = make_trajectory(make_arrays(), start.agent.network.initial_state(BATCH))
    whole, _ = updating(thrice)(start, trajectory)
    state, update = start, updating(once)
    for _ in range(3):
        state, _ = update(eqx.tree_at(lambda s: s.memory, state, start.memory), trajectory)
    assert int(whole.updates) == 1
    assert_same(
        *(eqx.filter((s.agent, s.optimizer, s.memory), eqx.is_array) for s in (whole, state))
    )


def test_a_batch_is_cut_into_equal_parts():
    with pytest.raises(ValueError, match=r"num_envs is 2; it must be a multiple .* 3 x 1"):
        make_config({"engine.accumulate": 3})
