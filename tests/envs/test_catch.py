import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.envs.catch import Catch
from synthetic_returns.types import StepType


def run(env: Catch, seed: int, actions):
    """The columns of the balls and all steps of one episode, the first one included."""
    state, first = env.reset(jax.random.key(seed))
    _, rest = jax.jit(lambda s, a: jax.lax.scan(env.step, s, a))(
        state, jnp.asarray(actions, jnp.int32)
    )
    steps = jax.tree.map(lambda a, b: np.concatenate([np.asarray(a)[None], b]), first, rest)
    return np.asarray(state.columns), steps


def random_actions(env: Catch, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 3, env.max_episode_steps)


def test_twenty_runs_are_140_frames():
    env = Catch()
    _, steps = run(env, 0, random_actions(env, 0))
    assert len(steps.reward) == 140
    assert (steps.step_type[-2:] == [StepType.MID, StepType.LAST]).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_frame_and_reward_against_plain_loops(seed):
    env = Catch(runs=5, miss_reward=-0.5)
    actions = random_actions(env, seed)
    columns, steps = run(env, seed, actions)
    paddle, outcomes = 3, []
    for t in range(5 * 7):
        if t > 0:
            paddle = min(max(paddle + actions[t - 1] - 1, 0), 6)
        row, column = t % 7, columns[t // 7]
        frame = np.zeros((7, 7, 1), np.float32)
        frame[row, column] = frame[6, paddle] = 1
        np.testing.assert_array_equal(steps.observation[t], frame)
        landed, caught = row == 6, row == 6 and column == paddle
        assert steps.reward[t] == (1 if caught else -0.5 if landed else 0)
        assert steps.events["catch"][t] == caught
        assert steps.events["miss"][t] == (landed and not caught)
        assert frame.sum() == (1 if caught else 2)
        outcomes += [caught] if landed else []
    assert len(outcomes) == 5
    assert steps.events["success"].sum() == pytest.approx(np.mean(outcomes))


def test_delayed_rewards_are_the_sum_on_the_last_step():
    prompt, delayed = Catch(miss_reward=-1.0), Catch(miss_reward=-1.0, delayed=True)
    actions = random_actions(prompt, 7)
    _, at_once = run(prompt, 7, actions)
    _, at_last = run(delayed, 7, actions)
    assert at_once.events["catch"].sum() > 0
    assert (at_last.reward[:-1] == 0).all()
    assert at_last.reward[-1] == at_once.reward.sum()
    np.testing.assert_array_equal(at_last.observation, at_once.observation)


@pytest.mark.parametrize("runs", [5, 20])
def test_the_scoreboard_counts_what_will_be_paid(runs):
    hidden, shown = Catch(runs=runs, delayed=True), Catch(runs=runs, delayed=True, scoreboard=True)
    actions = np.asarray(scripted_actions(hidden, 3))
    actions[len(actions) // 2 :] = 0  # some are missed
    _, without = run(hidden, 3, actions)
    _, steps = run(shown, 3, actions)
    board, score = steps.observation[:, :7], steps.observation[:, 7:]
    np.testing.assert_array_equal(board, without.observation)
    np.testing.assert_array_equal(steps.reward, without.reward)
    assert score.shape == (7 * runs, -(-runs // 7), 7, 1)
    caught = np.cumsum(steps.events["catch"])
    assert 0 < caught[-1] < runs
    np.testing.assert_array_equal(score.reshape(len(score), -1).sum(axis=1), caught)
    assert score.reshape(len(score), -1)[-1, : int(caught[-1])].all()  # from the left
    assert steps.reward[-1] == caught[-1]


def scripted_actions(env: Catch, seed: int) -> list[int]:
    state, _ = env.reset(jax.random.key(seed))
    actions = []
    for _ in range(env.max_episode_steps):
        actions.append(int(env.optimal_action(state)))
        state, _ = env.step(state, jnp.int32(actions[-1]))
    return actions


def test_balls_fall_in_every_column_equally_often():
    columns = jax.vmap(lambda key: Catch().reset(key)[0].columns)(
        jax.random.split(jax.random.key(0), 2000)
    )
    counts = np.bincount(np.asarray(columns).ravel(), minlength=7)
    assert abs(counts / counts.sum() - 1 / 7).max() < 4 * np.sqrt(1 / 7 * 6 / 7 / 40000)


@pytest.mark.parametrize("seed", range(5))
def test_agrees_step_by_step_with_bsuite(seed):
    bsuite_catch = pytest.importorskip("bsuite.environments.catch")
    ours, theirs = Catch(runs=1, rows=10, columns=5, miss_reward=-1.0), None
    actions = random_actions(ours, seed)
    columns, steps = run(ours, seed, actions)
    theirs = bsuite_catch.Catch(rows=10, columns=5)
    timestep = theirs.reset()
    theirs._ball_x = int(columns[0])  # the one thing that is random
    np.testing.assert_array_equal(theirs._observation(), steps.observation[0, :, :, 0])
    for t, action in enumerate(actions, start=1):
        timestep = theirs.step(action)
        np.testing.assert_array_equal(timestep.observation, steps.observation[t, :, :, 0])
        assert timestep.reward == steps.reward[t]
        assert timestep.discount == steps.discount[t]
        assert timestep.last() == (steps.step_type[t] == StepType.LAST)
    assert timestep.last()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"runs": 0}, "runs=0 is not allowed: use a whole number of at least 1"),
        ({"runs": -20}, "runs=-20"),
        ({"rows": 1}, "rows=1"),
        ({"columns": 0}, "columns=0"),
        ({"scoreboard": True}, "scoreboard=True shows what is paid at the end, and without delay"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        Catch(**parameters)
