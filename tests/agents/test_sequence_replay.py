"""The replay: what is drawn happened in that order, as often as priorities say."""

import copy

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.agents.replay.replay import SequenceReplay
from synthetic_returns.nn.lstm import LstmState
from synthetic_returns.types import StepType, TimeStep, Trajectory

UNROLL, ENVS, ACTIONS = 4, 3, 2


def stamp(stream, time, env):
    """A number that says where and when a step happened."""
    return 10_000 * stream + 10 * time + env


def unroll(number, stream=0, life=0):
    """The unroll of this number: every step is stamped; episodes of 5 steps, by environment."""
    time = number * UNROLL + np.arange(UNROLL + 1)[:, None] + 1_000 * life
    env = np.arange(ENVS)[None]
    stamps = jnp.asarray(stamp(stream, time, env), jnp.float32)
    phase = (time - 1_000 * life + env) % 6
    kind = np.where(phase == 0, StepType.FIRST, np.where(phase == 5, StepType.LAST, StepType.MID))
    timestep = TimeStep(
        step_type=jnp.asarray(kind, jnp.int8),
        reward=stamps,
        discount=jnp.ones_like(stamps),
        observation=stamps[..., None],
        events={},
    )
    core = LstmState(stamps[0][:, None], stamps[0][:, None])
    return Trajectory(
        timestep=timestep,
        action=jnp.asarray(np.broadcast_to(time % ACTIONS, phase.shape)[:-1], jnp.int32),
        logits=jnp.zeros((UNROLL, ENVS, ACTIONS)),
        value=stamps[:-1],
        core=core,
    )


def make(length=6, blocks=5, streams=1, **settings):
    capacity = blocks * UNROLL * ENVS * streams
    return SequenceReplay(
        capacity,
        eqx.filter_eval_shape(unroll, 0),
        length=length,
        streams=streams,
        **settings,
    )


def check_drawn(drawn, length):
    """Consecutive steps of one environment, with the core of the first one."""
    stamps = np.asarray(drawn.trajectory.timestep.reward)
    assert stamps.shape[0] == length + 1
    np.testing.assert_array_equal(np.diff(stamps, axis=0), 10)
    np.testing.assert_array_equal(drawn.trajectory.core.hidden[:, 0], stamps[0])
    np.testing.assert_array_equal(drawn.trajectory.timestep.observation[..., 0], stamps)
    np.testing.assert_array_equal(drawn.trajectory.value, stamps[:-1])
    time = stamps.astype(int) % 10_000 // 10
    assert (time[0] % UNROLL == 0).all()
    np.testing.assert_array_equal(drawn.trajectory.action, time[:-1] % ACTIONS)
    return set(stamps[0].astype(int).tolist())


def credit_of(drawn):
    assert drawn.assignment is not None
    return np.asarray(drawn.assignment.reward)


@pytest.mark.parametrize("length", [1, 4, 6, 8])
def test_sequences_are_what_happened_over_many_rounds(length):
    replay = make(length)
    begun = set()
    for number in range(23):
        replay.add(unroll(number))
        if not len(replay):
            continue
        begun |= check_drawn(replay.sample(64), length)
        newest = [stamp(0, number * UNROLL, 0) - stamp(0, 0, 0)]
        assert max(begun) <= newest[0]
    # Every unroll was the beginning of one, in every environment, once its successors had come.
    span = -(-length // UNROLL)
    want = {stamp(0, n * UNROLL, env) for n in range(23 - span) for env in range(ENVS)}
    assert begun == want


def test_what_made_room_is_never_drawn():
    replay = make(length=6, blocks=5)
    for number in range(12):
        replay.add(unroll(number))
    begun = check_drawn(replay.sample(200), 6)
    assert {x // 10 // UNROLL for x in begun} == {7, 8, 9}
    assert (len(replay), replay.steps) == (3 * ENVS, 5 * UNROLL * ENVS)


def test_steps_that_did_not_follow_each_other_are_never_joined():
    """An actor that starts again begins other episodes, whatever it played before."""
    replay = make(length=6, blocks=12)
    for number in range(5):
        replay.add(unroll(number))
    for number in range(5, 9):
        replay.add(unroll(number, life=1), follows=number > 5)
    begun = check_drawn(replay.sample(300), 6)
    assert {x // 10 // UNROLL for x in begun} == {0, 1, 2, 250 + 5, 250 + 6}
    assert [list(run) for run in replay.runs(0)] == [[0, 1, 2, 3], [5, 6, 7]]


def test_streams_are_apart():
    replay = make(length=4, blocks=4, streams=2)
    for number in range(6):
        for stream in (0, 1):
            replay.add(unroll(number, stream), stream)
    begun = check_drawn(replay.sample(300), 4)
    assert {x // 10_000 for x in begun} == {0, 1}


@pytest.mark.parametrize("history", [1, 4, 11])
def test_the_past_of_a_sequence_is_known_as_far_as_it_is_kept(history):
    """Where it is not, because it made room or was interrupted, no episode starts."""
    replay = make(length=4, blocks=8, history=history)
    for number in range(13):
        replay.add(unroll(number), follows=number != 9)
    drawn = replay.sample(200)
    past = drawn.past
    assert past is not None
    assert past.first.shape == (history, 200)
    start = np.asarray(drawn.trajectory.timestep.reward[0]).astype(int)
    time, env = start // 10, start % 10
    oldest = np.where(time >= 9 * UNROLL, 9, 13 - 8) * UNROLL  # that led to it
    unknown = 0
    for back in range(1, history + 1):
        then = time - back
        known = then >= oldest
        seen = np.asarray(past.observation)[-back, :, 0]
        np.testing.assert_array_equal(seen[known], (start - 10 * back)[known])
        first = known & ((then + env) % 6 == 0)
        np.testing.assert_array_equal(np.asarray(past.first)[-back], first)
        unknown += np.count_nonzero(~known)
    assert unknown > 0
    assert history == 1 or np.any(past.first)


def test_an_unroll_is_drawn_only_when_it_has_been_paid():
    replay = SequenceReplay(
        8 * UNROLL * ENVS,
        eqx.filter_eval_shape(unroll, 0),
        length=4,
        credit=True,
    )
    for number in range(4):
        replay.add(unroll(number))
    assert len(replay) == 0
    replay.pay(0, np.full((UNROLL, ENVS), 7.0))
    replay.pay(1, np.full((UNROLL, ENVS), 8.0))
    assert len(replay) == 2 * ENVS
    drawn = replay.sample(50)
    credit = credit_of(drawn)
    begun = np.asarray(drawn.trajectory.timestep.reward[0]) // 10 // UNROLL
    np.testing.assert_array_equal(credit, np.broadcast_to(7.0 + begun, credit.shape))
    known = np.zeros((UNROLL, ENVS), bool)
    known[2:] = True
    replay.pay(0, np.full((UNROLL, ENVS), 9.0), known=known)
    credit = credit_of(replay.sample(50))
    assert {tuple(column) for column in credit.T} == {(7, 7, 9, 9), (8, 8, 8, 8)}


def test_draws_follow_the_priorities_and_weights_undo_them():
    alpha, beta = 0.7, 0.5
    replay = make(length=4, blocks=5, priority_exponent=alpha, importance_exponent=beta)
    for number in range(5):
        replay.add(unroll(number))
    count = len(replay)
    assert count == 4 * ENVS
    everything = replay.sample(20 * count)
    index = np.unique(everything.index)
    assert len(index) == count
    priority = np.random.default_rng(0).uniform(0.1, 4.0, count)
    chosen = type(everything)(index, everything.trajectory, None, everything.weight)
    replay.reprioritise(chosen, priority)

    chance = priority**alpha / np.sum(priority**alpha)
    size = 20_000
    drawn = replay.sample(size)
    found = np.array([np.mean(drawn.index == i) for i in index])
    np.testing.assert_allclose(found, chance, atol=1.5 / size * count)  # stratified: nearly exact

    small = replay.sample(6)
    of = dict(zip(index, chance, strict=True))
    weight = np.array([(count * of[i]) ** -beta for i in small.index])
    np.testing.assert_allclose(small.weight, weight / weight.max(), rtol=1e-6)


def test_new_sequences_come_first_and_none_is_lost():
    replay = make(length=4, blocks=6, priority_exponent=1.0)
    for number in range(4):
        replay.add(unroll(number))
    drawn = replay.sample(200)
    replay.reprioritise(drawn, np.full(200, 5.0))
    drawn = replay.sample(200)
    replay.reprioritise(drawn, np.zeros(200))
    assert len(replay) == 3 * ENVS  # an error of 0 is no reason never to look again
    replay.add(unroll(4))
    newest = check_drawn(replay.sample(50), 4)
    assert {x // 10 // UNROLL for x in newest} == {3}


def test_a_replay_that_holds_no_sequence_is_refused():
    with pytest.raises(ValueError, match=r"replay.capacity is 24; sequences of 6 .* at least 48"):
        make(length=6, blocks=2)


def test_a_restored_replay_draws_the_same():
    one, two = make(), make()
    for number in range(7):
        one.add(unroll(number))
    one.sample(4)
    two.restore(copy.deepcopy(one.snapshot()))
    for replay in (one, two):
        assert replay.bytes == one.bytes > 0
    a, b = one.sample(9), two.sample(9)
    np.testing.assert_array_equal(a.index, b.index)
