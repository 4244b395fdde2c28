"""Acting: no step is lost, moved or paired with the wrong one, wherever unrolls are cut."""

import types

import equinox as eqx
import jax
import numpy as np
import pytest

from synthetic_returns.acting import actor
from synthetic_returns.envs.base import VectorEnvironment
from synthetic_returns.envs.catch import Catch
from synthetic_returns.nn.networks import AgentNetwork, MlpTorso
from synthetic_returns.types import StepType
from tests.acting.counting import ACTION, ACTIONS, TIME, CountingEnv, CountingNetwork

BATCH = 5
ENV = VectorEnvironment(CountingEnv())


def random_network():
    torso = MlpTorso((3,), (8,), key=jax.random.key(1))
    return AgentNetwork(
        torso, 8, lstm_size=6, policy_size=8, num_actions=ACTIONS, key=jax.random.key(2)
    )


def catch_network(env):
    torso = MlpTorso(env.observation_shape, (8,), key=jax.random.key(1))
    return AgentNetwork(
        torso, 8, lstm_size=0, policy_size=8, num_actions=env.num_actions, key=jax.random.key(2)
    )


def play(network, lengths, *, greedy=False):
    """Consecutive unrolls of these lengths; the states around them and the trajectories."""
    run = eqx.filter_jit(
        lambda state, length: actor.unroll(ENV, network, state, length, greedy=greedy)
    )
    states = [actor.start(ENV, network, BATCH, jax.random.key(0))]
    trajectories = []
    for length in lengths:
        state, trajectory = run(states[-1], length)
        states.append(state)
        trajectories.append(trajectory)
    return states, trajectories


def joined(trajectories):
    """All transitions, as if they were one unroll: steps ``[T + 1, B]``, actions and logits."""

    def join(*parts):
        return np.concatenate([*(np.asarray(part)[:-1] for part in parts), parts[-1][-1:]])

    timesteps = jax.tree.map(join, *(trajectory.timestep for trajectory in trajectories))
    steps = types.SimpleNamespace(
        time=timesteps.observation[..., TIME].astype(int),
        action=timesteps.observation[..., ACTION].astype(int),
        reward=timesteps.reward,
        first=timesteps.step_type == StepType.FIRST,
        last=timesteps.step_type == StepType.LAST,
    )
    action = np.concatenate([trajectory.action for trajectory in trajectories])
    logits = np.concatenate([trajectory.logits for trajectory in trajectories])
    return steps, action, logits


@pytest.mark.parametrize("lengths", [(20,), (5,) * 4, (7, 1, 12)])
def test_counting_agrees_everywhere(lengths):
    _, trajectories = play(CountingNetwork(), lengths)
    steps, action, logits = joined(trajectories)
    first, time = steps.first, steps.time
    assert 5 < first.sum() < 80

    # The core counts the steps of the episode just as the environment does, and acts on it.
    count = time + 1
    np.testing.assert_array_equal(logits.max(axis=-1), 1000 + count[:-1])
    np.testing.assert_array_equal(action, count[:-1] % ACTIONS)
    # The action leads to the next step, its reward stands there, and a LAST is followed by FIRST.
    np.testing.assert_array_equal(first[1:], steps.last[:-1])
    moved = ~first[1:]
    np.testing.assert_array_equal(time[1:][moved], time[:-1][moved] + 1)
    np.testing.assert_array_equal(steps.action[1:][moved], action[moved])
    np.testing.assert_array_equal(steps.reward[1:][moved], (10 * time[1:] + action)[moved])
    assert not np.any(time[first])
    assert not np.any(steps.reward[first])


def test_an_unroll_begins_where_the_last_one_ended():
    states, trajectories = play(CountingNetwork(), (5, 5, 5))
    for before, after, state in zip(trajectories[:-1], trajectories[1:], states[1:-1], strict=True):
        assert after.timestep.reward.shape == (6, BATCH)
        assert after.action.shape == (5, BATCH)
        end = jax.tree.map(lambda x: np.asarray(x)[-1], before.timestep)
        start = jax.tree.map(lambda x: np.asarray(x)[0], after.timestep)
        jax.tree.map(np.testing.assert_array_equal, end, start)
        # The core before the first step has counted every step of the episode but this one.
        running = start.step_type != StepType.FIRST
        count = np.asarray(after.core.hidden)[:, 0]
        np.testing.assert_array_equal(count[running], start.observation[running, TIME])
        assert running.any()
        jax.tree.map(np.testing.assert_array_equal, after.core, state.core)


@pytest.mark.parametrize("lengths", [(5,) * 4, (7, 1, 12)])
def test_one_unroll_of_20_equals_many_short_ones(lengths):
    """Also with a policy that is random: the keys do not depend on where unrolls are cut."""
    network = random_network()
    whole_states, whole = play(network, (20,))
    states, parts = play(network, lengths)
    steps, action, logits = joined(parts)
    np.testing.assert_array_equal(action, whole[0].action)
    np.testing.assert_allclose(logits, whole[0].logits, rtol=1e-5, atol=1e-6)
    for name, array in vars(joined(whole)[0]).items():
        np.testing.assert_array_equal(vars(steps)[name], array)
    np.testing.assert_array_equal(
        states[-1].statistics.episodes, whole_states[-1].statistics.episodes
    )
    assert len(np.unique(action)) == ACTIONS


def test_statistics_equal_a_count_of_the_episodes():
    states, trajectories = play(random_network(), (17, 17))
    steps, action, _ = joined(trajectories)
    episodes = []
    for row in range(BATCH):
        begins = np.flatnonzero(steps.first[:, row])
        ends = np.flatnonzero(steps.last[:, row])
        for begin, end in zip(begins, ends, strict=False):  # the last one is still running
            assert begin < end
            episodes.append(
                {
                    "episode_return": steps.reward[begin : end + 1, row].sum(),
                    "episode_steps": end - begin,
                    "success": 1,
                    "zero": np.sum(action[begin:end, row] == 0),
                }
            )
    statistics = states[-1].statistics
    assert np.sum(statistics.episodes) == len(episodes) > 10
    got = statistics.means()
    assert got.keys() == episodes[0].keys()
    for name, mean in got.items():
        assert mean == pytest.approx(np.mean([episode[name] for episode in episodes]), rel=1e-5)


def test_statistics_are_reported_once_and_running_episodes_go_on():
    states, _ = play(random_network(), (17, 17))
    between, after = states[1].statistics, states[2].statistics
    assert not between.reported().means()
    later = actor.unroll(
        ENV,
        random_network(),
        eqx.tree_at(lambda state: state.statistics, states[1], between.reported()),
        17,
    )[0].statistics
    np.testing.assert_array_equal(later.episodes, after.episodes - between.episodes)
    assert np.sum(later.episodes) > 0
    for name, total in later.finished.items():
        want = after.finished[name] - between.finished[name]
        np.testing.assert_allclose(total, want, rtol=1e-5)
        np.testing.assert_array_equal(later.running[name], after.running[name])


def test_greedy_takes_the_most_probable_action_and_sampling_the_others_too():
    network = random_network()
    _, (greedy,) = play(network, (40,), greedy=True)
    np.testing.assert_array_equal(greedy.action, np.argmax(greedy.logits, axis=-1))
    _, (sampled,) = play(network, (40,))
    probability = np.asarray(jax.nn.softmax(sampled.logits))
    expected = probability.reshape(-1, ACTIONS).mean(axis=0)
    counts = np.bincount(np.asarray(sampled.action).ravel(), minlength=ACTIONS)
    deviation = np.sqrt(expected * (1 - expected) / sampled.action.size)
    assert np.all(np.abs(counts / sampled.action.size - expected) < 4 * deviation)
    assert np.any(sampled.action != np.argmax(sampled.logits, axis=-1))


def test_environments_are_independent():
    _, (trajectory,) = play(CountingNetwork(), (20,))
    kinds = np.asarray(trajectory.timestep.step_type)
    assert {int(kind) for kind in kinds.ravel()} == {int(kind) for kind in StepType}
    assert len({tuple(kinds[:, row]) for row in range(BATCH)}) > 1


def test_staggered_environments_are_evenly_spread_over_an_episode():
    """And each of them is where it would have come by itself."""
    env = VectorEnvironment(Catch(runs=2))
    network = catch_network(env.env)
    begun = actor.start(env, network, BATCH, jax.random.key(0))
    staggered = actor.stagger(env, network, begun)
    longest = env.env.max_episode_steps
    ahead = [row * longest // BATCH for row in range(BATCH)]
    np.testing.assert_array_equal(staggered.statistics.running["episode_steps"], ahead)
    for row, steps in enumerate(ahead):
        alone = begun if not steps else actor.unroll(env, network, begun, steps)[0]
        np.testing.assert_array_equal(
            staggered.timestep.observation[row], alone.timestep.observation[row]
        )
