"""Atari games: the score unclipped, the frames as asked for, the gates as the game counts them."""

import dataclasses

import jax
import numpy as np
import pytest

from synthetic_returns.envs.atari import Atari
from synthetic_returns.envs.pong import Pong
from synthetic_returns.envs.registry import ATARI_TASKS, find_task, make
from synthetic_returns.envs.skiing import GATES, PENALTY, Skiing
from synthetic_returns.types import StepType

pytest.importorskip("ale_py")

NOOP, RIGHT, LEFT = 0, 1, 2


def play(task, choose, num_envs=1, steps=None, seed=0):
    """Plays until every game is over once, or for so many steps; ``choose(t, rng)`` acts."""
    envs = task.environments(num_envs, jax.random.key(seed))
    rng = np.random.default_rng(seed)
    played = [envs.reset()]
    over = np.zeros(num_envs, bool)
    while len(played) <= (steps or 10**6) and (steps or not over.all()):
        action = np.broadcast_to(choose(len(played), rng), num_envs)
        played.append(envs.step(action))
        over |= played[-1].last
    envs.close()
    return played


def total(played, value):
    """The sum over the first episode of the first game."""
    end = next(t for t, step in enumerate(played) if step.last[0])
    return sum(float(value(step)[0]) for step in played[: end + 1])


@pytest.mark.parametrize("name", ATARI_TASKS)
def test_tasks_show_what_they_say(name):
    task = make(name)
    played = play(task, lambda t, rng: rng.integers(0, task.num_actions, 2), num_envs=2, steps=8)
    assert tuple(ATARI_TASKS[name].events) == task.event_names
    for step in played:
        assert step.observation.shape == (2, *task.observation_shape)
        assert step.observation.dtype == task.observation_dtype == np.uint8
        assert set(step.events) == set(task.event_names)
    assert played[0].step_type.tolist() == [StepType.FIRST] * 2
    assert len(np.unique(played[-1].observation)) > 1
    assert hash(task) == hash(make(name))
    # The newest frame is the last channel.
    later, before = played[-1].observation, played[-2].observation
    np.testing.assert_array_equal(later[..., 0], before[..., 1])
    assert np.any(later[..., 1] != later[..., 0])


def test_frames_before_the_first_are_black():
    """So the first state of a game is like no other; see docs/atari.md on what c does with that."""
    task = Atari("pong", frames=4, height=42, width=42)
    played = play(task, lambda t, rng: NOOP, num_envs=2)
    step_type = np.array([step.step_type for step in played])
    starts = np.argwhere(step_type == StepType.FIRST)
    assert np.any(starts[:, 0] > 0)  # the second game of the one that was over first
    for start, row in starts:
        frames = played[start].observation[row]
        assert not frames[..., :-1].any()
        assert frames[..., -1].any()


@pytest.mark.parametrize("task", [Skiing, Pong])
def test_pixels_are_shown_by_how_far_they_are_from_the_ground(task):
    shown, plain = (
        play(task(**settings), lambda t, rng: NOOP, steps=3)[-1].observation.astype(int)
        for settings in ({}, {"ground": None})
    )
    np.testing.assert_array_equal(shown, np.abs(plain - task().ground))
    assert np.mean(shown == 0) > 0.5  # snow, or the court
    with pytest.raises(ValueError, match="ground is 256; greys are from 0 to 255"):
        task(ground=256)


def test_never_turning_misses_eleven_gates():
    """What is read off the display agrees with what the game charges for."""
    played = play(Skiing(), lambda t, rng: NOOP)
    score = total(played, lambda step: step.reward)
    missed = total(played, lambda step: step.events["gates_missed"])
    assert missed == 11
    assert total(played, lambda step: step.events["gate"]) == GATES - missed
    assert total(played, lambda step: step.events["success"]) == pytest.approx(9 / 20)
    seconds = total(played, lambda step: step.events["seconds"])
    assert score == pytest.approx(-PENALTY * missed - 100 * seconds, abs=0.5)
    assert -9100 < score < -8950
    end = next(step for step in played if step.last[0])
    assert end.discount[0] == 0  # the finish
    assert end.reward[0] <= -PENALTY * missed  # unclipped


@pytest.mark.slow
def test_gates_are_counted_in_races_that_turn():
    def choose(t, rng):
        return rng.choice([NOOP, NOOP, RIGHT, LEFT], 8) if t % 3 == 0 else NOOP

    played = play(Skiing(), choose, num_envs=8, seed=4)
    ends = {}
    passed = np.zeros(8)
    for step in played:
        passed += step.events["gate"]
        for row in np.flatnonzero(step.last):
            if row not in ends and step.discount[row] == 0:
                ends[row] = (passed[row], step.events["gates_missed"][row], -step.reward[row])
        passed[step.last] = 0
    assert len(ends) >= 4
    assert len({missed for _, missed, _ in ends.values()}) > 1
    for gates, missed, charged in ends.values():
        assert gates + missed == GATES
        assert missed == charged // PENALTY


@pytest.mark.slow
def test_running_out_of_time_is_a_truncation():
    task = Skiing()
    played = play(task, lambda t, rng: LEFT)
    end = next(t for t, step in enumerate(played) if step.last[0])
    assert end <= task.max_episode_steps
    assert played[end].discount[0] == 1
    assert played[end].reward[0] > -PENALTY
    score = total(played, lambda step: step.reward)
    assert score == pytest.approx(-30_000, abs=50)


def test_pong_counts_points():
    task = Pong(frame_skip=8)  # quicker
    played = play(task, lambda t, rng: 0, steps=60)
    points = sum(step.events["point"][0] - step.events["point_lost"][0] for step in played)
    assert points == sum(step.reward[0] for step in played) <= -1


def random_actions(task, num_envs):
    return lambda t, rng: rng.integers(0, task.num_actions, num_envs)


@pytest.mark.parametrize(
    "task",
    [
        Pong(frame_skip=16, max_frames=6_000),  # ends by itself, and in other games is cut off
        Pong(frame_skip=8, max_frames=800),  # is always cut off
        Atari("breakout", frame_skip=16, height=42, width=42),
    ],
    ids=["pong", "pong cut off", "breakout"],
)
def test_a_delayed_score_is_paid_at_the_end_and_is_the_same_score(task):
    delayed = dataclasses.replace(task, delayed=True)
    num_envs, steps = 3, 500
    now, later = (
        play(t, random_actions(t, num_envs), num_envs, steps=steps) for t in (task, delayed)
    )
    score, ends = np.zeros(num_envs), 0
    for before, after in zip(now, later, strict=True):
        np.testing.assert_array_equal(after.observation, before.observation)
        np.testing.assert_array_equal(after.step_type, before.step_type)
        for name, event in before.events.items():  # points, and who has won
            np.testing.assert_array_equal(after.events[name], event)
        score += before.reward
        np.testing.assert_array_equal(after.reward, np.where(before.last, score, 0))
        assert not after.discount[after.last].any()  # nothing is left to be paid
        np.testing.assert_array_equal(after.discount[~after.last], 1)
        ends += np.count_nonzero(before.last)
        score[before.last] = 0
    assert ends > num_envs  # the account of an episode is not that of the one before
    assert any(step.reward.any() for step in later)


@pytest.mark.parametrize("name", ["skiing", "ale:Skiing"])
def test_skiing_is_delayed_already(name):
    with pytest.raises(ValueError, match=r"delayed is True .* pays for the gates at the end"):
        make(name, delayed=True)


def test_no_rom_is_loaded_to_count_the_actions_again(monkeypatch):
    import ale_py

    task = make("ale:Freeway")
    assert task.num_actions == 3
    monkeypatch.setattr(ale_py, "ALEInterface", None)
    assert task.num_actions == 3


def test_any_game_by_its_name():
    task = find_task("ale:SpaceInvaders").make()
    assert isinstance(task, Atari)
    assert (task.game, task.observation_shape) == ("space_invaders", (84, 84, 4))


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="no Atari game 'pog'; did you mean 'pong'"):
        find_task("ale:Pog").make()
    with pytest.raises(ValueError, match=r"rows is \(50, 40\).*within the 53"):
        Skiing(rows=(50, 40))
    with pytest.raises(ValueError, match="frame_skip is 0"):
        Pong(frame_skip=0)
