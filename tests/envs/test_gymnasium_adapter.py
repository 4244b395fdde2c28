import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from synthetic_returns.envs.registry import TASKS, register_with_gymnasium
from synthetic_returns.types import StepType
from tests.envs.playing import BATCH, ENVIRONMENTS, unroll

register_with_gymnasium()


@pytest.mark.parametrize("name", TASKS)
def test_passes_the_checker_of_gymnasium(name):
    env = gymnasium.make(TASKS[name].gymnasium_id, render_mode="rgb_array")
    check_env(env.unwrapped)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_seed_gives_the_same_episodes_alone_in_a_vector_and_in_jax(name):
    actions, steps = unroll(name)
    envs = gymnasium.make_vec(TASKS[name].gymnasium_id, num_envs=BATCH)
    alone = gymnasium.make(TASKS[name].gymnasium_id)
    observations, _ = envs.reset(seed=0)
    observation, _ = alone.reset(seed=1)
    over, endings = False, 0
    for t, action in enumerate(actions[: len(actions) // 2 + 5], start=1):
        np.testing.assert_array_equal(observations, steps.observation[t - 1])
        np.testing.assert_array_equal(observation, steps.observation[t - 1, 1])
        observations, rewards, terminated, truncated, infos = envs.step(action)
        np.testing.assert_array_equal(rewards, steps.reward[t])
        np.testing.assert_array_equal(terminated, steps.step_type[t] == StepType.LAST)
        assert not truncated.any()
        for event, values in {"discount": steps.discount, **steps.events}.items():
            np.testing.assert_array_equal(infos[event], values[t])
            assert infos[f"_{event}"].all()
        if over:
            observation, info = alone.reset()
            over = False
        else:
            observation, reward, over, _, info = alone.step(action[1])
            assert reward == steps.reward[t, 1]
            endings += over
        assert info == {key: values[1] for key, values in infos.items() if key[0] != "_"}
    assert endings >= 1


def test_parameters_are_keyword_arguments():
    env = gymnasium.make("synthetic_returns/CatchDelayed-v0", runs=3)
    env.reset(seed=0)
    rewards = []
    over = False
    while not over:
        _, reward, over, _, _ = env.step(1)
        rewards.append(reward)
    assert len(rewards) == 3 * 7 - 1
    envs = gymnasium.make_vec("synthetic_returns/KeyToDoor-v0", num_envs=2, view="full")
    assert envs.observation_space.shape == (2, 7, 11, 3)
    assert envs.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP


def test_gymnasiums_own_vector_environment_agrees():
    native = gymnasium.make_vec("synthetic_returns/Catch-v0", num_envs=2, runs=2)
    synced = gymnasium.make_vec(
        "synthetic_returns/Catch-v0", num_envs=2, vectorization_mode="sync", runs=2
    )
    actions = np.random.default_rng(1).integers(0, 3, (40, 2))
    np.testing.assert_array_equal(native.reset(seed=5)[0], synced.reset(seed=5)[0])
    for action in actions:
        for ours, theirs in zip(native.step(action)[:4], synced.step(action)[:4], strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_unseeded_environments_differ_and_resets_go_on():
    columns = [gymnasium.make("synthetic_returns/Catch-v0").reset()[0] for _ in range(8)]
    assert any(not np.array_equal(columns[0], other) for other in columns[1:])
    envs = gymnasium.make_vec("synthetic_returns/KeyToDoor-v0", num_envs=4)
    first, _ = envs.reset()
    again, _ = envs.reset()
    assert not np.array_equal(first, again)
    listed, _ = envs.reset(seed=[3, 4, 5, 6])  # pyright: ignore[reportArgumentType]
    counted, _ = envs.reset(seed=3)
    np.testing.assert_array_equal(listed, counted)


def test_returned_arrays_can_be_written_to():
    envs = gymnasium.make_vec("synthetic_returns/Chain-v0", num_envs=2)
    observations, _ = envs.reset(seed=0)
    observations += 1
    for values in envs.step(np.array([0, 1]))[:4]:
        values[:] = 0


@pytest.mark.parametrize("name", TASKS)
def test_pictures_are_large(name):
    env = gymnasium.make(TASKS[name].gymnasium_id, render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert isinstance(picture, np.ndarray)
    assert picture.dtype == np.uint8
    assert picture.shape[1] > 300
    envs = gymnasium.make_vec(TASKS[name].gymnasium_id, num_envs=2, render_mode="rgb_array")
    envs.reset(seed=0)
    pictures = envs.render()
    assert pictures is not None
    np.testing.assert_array_equal(pictures[0], picture)


def test_mistakes_get_clear_errors():
    env = gymnasium.make("synthetic_returns/Chain-v0", disable_env_checker=True).unwrapped
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action=2 is not one of the 2 actions: use an integer"):
        env.step(2)
    envs = gymnasium.make_vec("synthetic_returns/Chain-v0", num_envs=2)
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        envs.step(np.array([0, 0]))
    envs.reset(seed=0)
    with pytest.raises(ValueError, match="use integers from 0 to 1"):
        envs.step(np.array([0, -1]))
    with pytest.raises(ValueError, match="use integers from 0 to 1"):
        envs.step(np.array([0.5, 0.0]))
    with pytest.raises(ValueError, match="give one for each of the 2 environments"):
        envs.step(np.array([0, 1, 0]))
    with pytest.raises(ValueError, match="3 seeds for 2 environments"):
        envs.reset(seed=[1, 2, 3])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match='render_mode="human" is unknown'):
        gymnasium.make_vec("synthetic_returns/Chain-v0", num_envs=2, render_mode="human")
    with pytest.raises(ValueError, match="runs=0"):
        gymnasium.make("synthetic_returns/Catch-v0", runs=0)
    with pytest.raises(TypeError, match="has no parameter 'run'"):
        gymnasium.make("synthetic_returns/Catch-v0", run=2)
    with pytest.raises(ValueError, match="num_envs=0"):
        gymnasium.make_vec("synthetic_returns/Chain-v0", num_envs=0)
