import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.envs.t_maze import DOWN, LEFT, RIGHT, UP, TMaze
from tests.envs.playing import arrange, follow, play


def walk(corridor, goal, actions):
    """The maze in plain Python, as Ni et al. define it: what is seen, and the rewards."""
    x, y, visited, seen, rewards = 1, 0, False, [], []
    cells = {(i, 0) for i in range(corridor + 2)} | {(corridor + 1, 1), (corridor + 1, -1)}
    for t, action in enumerate(actions, start=1):
        dx, dy = {RIGHT: (1, 0), UP: (0, 1), LEFT: (-1, 0), DOWN: (0, -1)}[action]
        if (x + dx, y + dy) in cells:
            x, y = x + dx, y + dy
        exposed = 0
        if x == 0 and not visited:
            exposed, visited = goal, True
        junction = x == corridor + 1
        seen.append([exposed == 1, exposed == -1, junction, y == 1, y == -1])
        if t == corridor + 3:
            rewards.append(float(y == goal))
        else:
            rewards.append(-1 / corridor if x < t - 1 else 0.0)
    return np.array(seen, np.float32), rewards


@pytest.mark.parametrize("corridor", [1, 4])
def test_it_is_the_maze_of_the_paper(corridor):
    env = TMaze(corridor=corridor)
    rng = np.random.default_rng(0)
    ends = set()
    for episode in range(40):
        # To the cue or not, through the corridor, and up or down, with some steps gone astray.
        plan = [LEFT, RIGHT] * (episode % 2) + [RIGHT] * corridor + [UP, UP, UP]
        actions = np.array(plan[: corridor + 3])
        astray = rng.random(corridor + 3) < 0.1
        actions[astray] = rng.integers(4, size=astray.sum())
        goal = 1 if episode % 3 else -1
        steps = follow(env, arrange(env, goal=goal), actions)
        seen, rewards = walk(corridor, goal, actions)
        np.testing.assert_array_equal(steps.observation, seen)
        np.testing.assert_allclose(steps.reward, rewards, atol=1e-6)
        assert steps.events["success"].sum() == rewards[-1]
        np.testing.assert_array_equal(steps.events["cue"], seen[:, 0] + seen[:, 1])
        ends.add((rewards[-1], seen[:, :2].any()))
    assert len(ends) == 4  # right and wrong, with the cue and without


def test_who_skips_the_cue_can_wait_at_the_end_but_only_guess():
    env = TMaze(corridor=3)
    for goal, reward in ((1, 1), (-1, 0)):
        steps = follow(env, arrange(env, goal=goal), [RIGHT] * 3 + [UP] * 3)
        np.testing.assert_allclose(steps.reward, [0] * 5 + [reward], atol=1e-6)
        assert not steps.observation[:, :2].any()


def test_without_the_cue_any_choice_is_right_half_of_the_time():
    def guess(env, state, luck):
        return jnp.where(state.x < 3, RIGHT, UP).astype(jnp.int32)

    played = play(TMaze(corridor=2), guess, seed=1, episodes=1000)
    assert played["success"].mean() == pytest.approx(0.5, abs=0.07)
    assert played["success"].mean() == played["return"].mean()


@pytest.mark.parametrize("late", [False, True])
def test_the_cue_is_owed_until_the_goal_is_out_of_reach(late):
    env = TMaze(corridor=4)
    state = arrange(env, goal=-1, x=3, time=4 + late, seen=True)  # three steps from the goal
    assert float(env.owed(state)) == (0 if late else 0.5)
    assert float(env.owed(arrange(env, goal=-1, x=3, time=3))) == 0
    wrong = arrange(env, goal=-1, x=5, y=1, time=5 + late, seen=True)
    assert float(env.owed(wrong)) == (0 if late else 0.5)


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="corridor=0"):
        TMaze(corridor=0)
