"""Earlier unrolls beside new ones: what IMPALA's replay puts into a batch."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.agents.impala.settings import ImpalaSettings
from synthetic_returns.agents.replay.replay import SequenceReplay
from synthetic_returns.agents.replay.settings import UnrollReplaySettings
from synthetic_returns.credit.method import Assignment
from synthetic_returns.credit.paper.method import Paper
from synthetic_returns.engines.fused import FusedEngine
from synthetic_returns.engines.replaying import Mixing, make_replaying
from synthetic_returns.types import Trajectory
from tests.agents.test_sequence_replay import ENVS, UNROLL, unroll
from tests.credit.methods import REPLAY, Fickle, Taken
from tests.small import small_config

NEW = 9  # the number of the unroll that comes now


def make(share=0.5, *, credit=False, warmup=1):
    replay = SequenceReplay(
        8 * UNROLL * ENVS, eqx.filter_eval_shape(unroll, 0), length=UNROLL, credit=credit
    )
    agent = ImpalaSettings(replay=UnrollReplaySettings(share=share, warmup=warmup))
    return Mixing(agent, replay, None), replay


def played(number) -> Trajectory:
    """An unroll with the logits of the policy of its time, and an event."""
    trajectory = unroll(number)
    timestep = dataclasses.replace(trajectory.timestep, events={"a": trajectory.timestep.reward})
    logits = jnp.full_like(trajectory.logits, number)
    return dataclasses.replace(trajectory, timestep=timestep, logits=logits)


def test_a_batch_is_the_new_unrolls_and_earlier_ones_as_they_were_played():
    mixing, replay = make()
    for number in range(NEW + 1):
        mixing.follow(played(number))
    credit = np.arange(8 * UNROLL * ENVS, dtype=np.float32).reshape(1, 8 * UNROLL, ENVS)
    replay.arrays["credit"] = credit  # of every step another
    new = played(NEW)
    batch, assignment = mixing.mixed(new, Assignment(jnp.full((UNROLL, ENVS), -1.0)))
    assert batch.action.shape == (UNROLL, 2 * ENVS)
    assert assignment is not None
    assert assignment.reward is not None
    np.testing.assert_array_equal(batch.timestep.reward[:, :ENVS], new.timestep.reward)
    np.testing.assert_array_equal(batch.logits[:, :ENVS], new.logits)
    np.testing.assert_array_equal(assignment.reward[:, :ENVS], -1)
    stamps = np.asarray(batch.timestep.reward[:, ENVS:])
    np.testing.assert_array_equal(np.diff(stamps, axis=0), 10)  # consecutive steps
    numbers, env = stamps[0] // 10 // UNROLL, stamps[0].astype(int) % 10
    assert (numbers < NEW).all()
    assert (numbers >= NEW - 7).all()
    for column, number in enumerate(numbers.astype(int)):
        np.testing.assert_array_equal(batch.logits[:, ENVS + column], number)
        np.testing.assert_array_equal(batch.core.hidden[ENVS + column], stamps[0, column])
        rows = slice(number % 8 * UNROLL, (number % 8 + 1) * UNROLL)
        want = credit[0, rows, env[column]]
        np.testing.assert_array_equal(assignment.reward[:, ENVS + column], want)


@pytest.mark.parametrize(("share", "beside"), [(0.25, 1), (0.5, 3), (0.75, 9)])
def test_the_share_is_that_of_replayed_unrolls(share, beside):
    mixing, _ = make(share)
    for number in range(4):
        mixing.follow(played(number))
    batch, assignment = mixing.mixed(played(4), None)
    assert assignment is None
    assert batch.action.shape[1] == ENVS + beside


def test_until_the_warm_up_a_batch_is_what_comes():
    mixing, _ = make(warmup=3 * UNROLL * ENVS)
    for number in range(3):
        new = played(number)
        mixing.follow(new)
        assert (mixing.mixed(new, None)[0] is new) == (number < 2)


def test_all_are_drawn_alike():
    mixing, _ = make(share=0.9)
    for number in range(6):
        mixing.follow(played(number))
    starts = [
        np.asarray(mixing.mixed(played(6), None)[0].timestep.reward[0, ENVS:]) for _ in range(40)
    ]
    _, counts = np.unique(np.concatenate(starts), return_counts=True)
    assert len(counts) == 5 * ENVS  # the newest one's last state is not known yet
    assert counts.min() > 0.7 * counts.mean()


def test_the_engine_learns_from_both_with_the_credit_of_today():
    settings = {"credit": Fickle(replay=REPLAY), "agent.lstm_size": 0, "steps": 1000}
    replay = {"agent.replay": UnrollReplaySettings(share=0.5, capacity=240, warmup=60)}
    engine = FusedEngine(small_config("none", settings | replay), [0])
    assert engine._replaying is not None
    kept, batches = engine._replaying._replay, []

    def update(state, trajectory, assignment=None):
        batches.append((trajectory, assignment, kept.arrays["credit"].copy()))
        return state, {}

    engine._update = update
    for _ in range(20):
        engine.step()
    assert [batch.action.shape[1] for batch, _, _ in batches] == [4] * 2 + [8] * 18
    trajectory, assignment, credit = batches[-1]
    # Every replayed unroll is one of those kept, with what these are paid now.
    columns = np.concatenate([kept.arrays["value"], credit], axis=0)  # [2, rows, envs]
    unrolls = columns.reshape(2, 12, 5, 4).transpose(1, 3, 0, 2).reshape(48, 2, 5)
    for column in range(4, 8):
        one = np.stack([trajectory.value[:, column], assignment.reward[:, column]])
        assert np.abs(unrolls - one).sum((1, 2)).min() == 0


def test_there_is_no_replay_unless_a_share_is_asked_for():
    config = small_config("none")
    assert not config.replays
    assert make_replaying(config, 0, None) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"credit": Paper()},
            "'paper' .* agent.replay.share is 0.5: set it to 0, .* or the agent 'r2d2'",
        ),
        ({"credit": Taken()}, "a replay keeps rewards only: .* set agent.replay.share to 0"),
        ({"engine.accumulate": 2}, "engine.accumulate is 2 .* set it to 1"),
        ({"agent.replay.share": 1.0}, r"share is 1.0; it must lie in \[0, 1\)"),
    ],
)
def test_what_does_not_go_with_it_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        small_config("none", {"agent.replay.share": 0.5, **settings})
