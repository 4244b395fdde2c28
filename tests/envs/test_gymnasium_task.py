"""Any Gymnasium environment is a task, or is refused with what to do."""

import gymnasium
import jax
import numpy as np
import pytest

from synthetic_returns.envs.gymnasium_task import GymnasiumEnvironments, GymnasiumTask
from synthetic_returns.envs.host import draw_seed
from synthetic_returns.envs.registry import find_task
from synthetic_returns.presets import preset
from synthetic_returns.training.traces import read_traces
from synthetic_returns.training.trainer import train
from synthetic_returns.types import StepType
from synthetic_returns.viewer.view_run import record_run, write_run_view
from tests.small import METHODS, SETTINGS

ENVS = 3


def test_what_has_no_bounds_is_known():
    assert find_task("gym:CartPole-v1").make().unbounded
    assert not find_task("gym:Acrobot-v1").make().unbounded
    assert not find_task("catch").make().unbounded


def test_cart_pole_step_by_step():
    """Against single environments that are reset by hand."""
    task = find_task("gym:CartPole-v1").make(max_episode_steps=12)
    assert (task.observation_shape, task.num_actions, task.max_episode_steps) == ((4,), 2, 12)
    key = jax.random.key(3)
    envs = task.environments(ENVS, key)
    singles = [gymnasium.make("CartPole-v1", max_episode_steps=12) for _ in range(ENVS)]
    step = envs.reset()
    seed = draw_seed(key)
    want = [env.reset(seed=seed + i)[0] for i, env in enumerate(singles)]
    np.testing.assert_array_equal(step.observation, want)
    over = [False] * ENVS
    rng = np.random.default_rng(0)
    ends = []
    for _ in range(40):
        action = rng.integers(0, 2, ENVS)
        step = envs.step(action)
        for i, env in enumerate(singles):
            if over[i]:
                observation, over[i] = env.reset()[0], False
                expected = (StepType.FIRST, 0.0, 1.0)
            else:
                observation, reward, terminated, truncated, _ = env.step(action[i])
                over[i] = terminated or truncated
                kind = StepType.LAST if over[i] else StepType.MID
                expected = (kind, reward, 0.0 if terminated else 1.0)
                ends += [terminated] if over[i] else []
            np.testing.assert_array_equal(step.observation[i], observation)
            assert (step.step_type[i], step.reward[i], step.discount[i]) == expected
    assert True in ends
    assert False in ends  # by termination and by the time limit
    envs.close()


def test_images_stay_bytes():
    gymnasium.register("Bytes-v0", entry_point=lambda **_: Picture(), max_episode_steps=5)
    try:
        task = GymnasiumTask("Bytes-v0")
        step = task.environments(2, jax.random.key(0)).reset()
        assert step.observation.dtype == task.observation_dtype == np.uint8
    finally:
        del gymnasium.registry["Bytes-v0"]


class Picture(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (6, 6, 1), np.uint8)
    action_space = gymnasium.spaces.Discrete(2, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.full((6, 6, 1), 200, np.uint8), {}

    def step(self, action):
        assert action in (5, 6)
        return np.full((6, 6, 1), 100, np.uint8), float(action), False, False, {}


def test_actions_count_from_the_first_of_the_space():
    envs = GymnasiumEnvironments(gymnasium.vector.SyncVectorEnv([Picture] * 2), 0, np.dtype("u1"))
    envs.reset()
    np.testing.assert_array_equal(envs.step(np.array([0, 1])).reward, [5, 6])


@pytest.mark.parametrize(
    ("env_id", "parameters", "message"),
    [
        ("Blackjack-v1", {}, "are a Tuple and have to be a Box"),
        ("Pendulum-v1", {}, "are a Box and have to be Discrete"),
        ("CartPole-v1", {"max_episode_steps": 0}, "max_episode_steps is 0"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(env_id, parameters, message):
    with pytest.raises(ValueError, match=message):
        GymnasiumTask(env_id, **parameters)


def test_an_environment_without_a_time_limit_needs_one():
    gymnasium.register("Endless-v0", entry_point=lambda **_: Picture())
    try:
        with pytest.raises(ValueError, match=r"no time limit.*--task.max-episode-steps"):
            GymnasiumTask("Endless-v0")
        assert GymnasiumTask("Endless-v0", max_episode_steps=7).max_episode_steps == 7
    finally:
        del gymnasium.registry["Endless-v0"]


def test_other_ways_of_restarting_are_refused():
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    envs = gymnasium.vector.SyncVectorEnv([Picture], autoreset_mode=mode)
    with pytest.raises(ValueError, match=r"SAME_STEP.*NEXT_STEP"):
        GymnasiumEnvironments(envs, 0, np.dtype("u1"))


def test_cart_pole_is_trained_and_evaluated(tmp_path):
    settings = SETTINGS | {
        "steps": 80,
        "credit": METHODS["episodic"],
        "reporting.traces": 1,
        "reporting.eval_episodes": 2,
    }
    run = train(preset("gym:CartPole-v1").changed(settings), out=tmp_path / "run")
    summary = run.summary()
    assert summary["task"] == "gym:CartPole-v1"
    assert summary["eval"]["return_mean"] == summary["eval"]["episode_steps"] > 5
    (trace,) = read_traces(run.path)
    assert trace.reward.sum() == len(trace.reward) - 1  # a point for each step of one whole episode
    assert trace.explanation.paid[-1] == 0
    recorded = record_run(run.path, 2)
    for recording in recorded.recordings:
        assert recording.total == len(recording) - 1
        assert recording.frames is not None
    assert write_run_view(recorded, tmp_path / "view.html").stat().st_size > 1000
