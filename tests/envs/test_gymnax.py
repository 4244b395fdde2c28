"""Our tasks with gymnax's interface, and gymnax's environments as tasks of ours."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import synthetic_returns as sr
from synthetic_returns.envs.base import VectorEnvironment
from synthetic_returns.envs.registry import find_task, make

EXTRA = "needs the extra: pip install 'synthetic-returns[gymnax]'"


@pytest.mark.parametrize("done", [False, True])
def test_the_interface(done):
    env, task = (
        sr.GymnaxEnvironment("catch-delayed", runs=2, done=done),
        make("catch-delayed", runs=2),
    )
    assert env.default_params.max_steps_in_episode == task.max_episode_steps == 13
    observation, state = env.reset(jax.random.key(0), env.default_params)
    expected, first = task.reset(jax.random.key(0))
    np.testing.assert_array_equal(observation, first.observation)
    step = jax.jit(env.step)
    for time in range(30):
        key, action = jax.random.key(100 + time), jnp.int32(time % 3)
        expected, after = task.step(expected, action)
        observation, state, reward, *over, info = step(key, state, action, env.default_params)
        assert len(over) == (1 if done else 2)
        assert bool(over[0]) == bool(after.last) == ((time + 1) % 13 == 0)
        np.testing.assert_array_equal(info["final_observation"], after.observation)
        assert reward == after.reward
        if after.last:  # the next episode has begun
            expected, after = task.reset(key)
        np.testing.assert_array_equal(observation, after.observation)


def test_spaces():
    pytest.importorskip("gymnax", reason=EXTRA)
    env = sr.GymnaxEnvironment("chain")
    assert env.action_space(env.default_params).n == env.num_actions == 2
    assert env.observation_space(env.default_params).shape == (18,)


def test_gymnax_environments_are_tasks():
    gymnax = pytest.importorskip("gymnax", reason=EXTRA)
    task = find_task("gymnax:CartPole-v1").make()
    theirs, params = gymnax.make("CartPole-v1")
    assert task.observation_shape == (4,)
    assert task.num_actions == 2
    assert task.max_episode_steps == params.max_steps_in_episode
    envs = VectorEnvironment(task)
    state, timestep = envs.reset(jax.random.split(jax.random.key(0), 3))
    lasted, lengths = 0, []
    step = jax.jit(envs.step)
    for time in range(120):
        state, timestep = step(state, jnp.full(3, time % 2, jnp.int32))
        lasted += 1
        if timestep.last[0]:
            lengths.append(lasted)
            assert timestep.discount[0] == 0
        if timestep.first[0]:
            lasted = 0
    assert lengths
    assert all(5 < n < 200 for n in lengths)
    # One episode, step by step, as gymnax plays it with the same keys.
    ours, first = task.reset(jax.random.key(7))
    reset_key, key = jax.random.split(jax.random.key(7))
    observation, inner = theirs.reset_env(reset_key, params)
    np.testing.assert_array_equal(first.observation, observation)
    for _ in range(5):
        step_key, key = jax.random.split(key)
        with jax.numpy_dtype_promotion("standard"):
            observation, inner, reward, *_ = theirs.step_env(step_key, inner, 1, params)
        ours, after = task.step(ours, jnp.int32(1))
        np.testing.assert_array_equal(after.observation, observation)
        assert after.reward == reward


def test_a_time_limit_cuts_off():
    pytest.importorskip("gymnax", reason=EXTRA)
    task = find_task("gymnax:CartPole-v1").make(max_episode_steps=3)
    state, timestep = task.reset(jax.random.key(0))
    for time in range(3):
        state, timestep = task.step(state, jnp.int32(time % 2))
    assert timestep.last
    assert timestep.discount == 1


def test_training_on_one(tmp_path):
    pytest.importorskip("gymnax", reason=EXTRA)
    config = sr.preset("gymnax:CartPole-v1").changed({"reporting.eval_episodes": 2}, steps=2_000)
    assert sr.train(config, out=tmp_path / "run").summary()["eval"]["return_mean"] > 5


@pytest.mark.parametrize(
    ("name", "message"),
    [("Nothing-v0", "gymnax cannot make 'Nothing-v0'"), ("Pendulum-v1", "have to be discrete")],
)
def test_what_cannot_be_is_refused(name, message):
    pytest.importorskip("gymnax", reason=EXTRA)
    with pytest.raises(ValueError, match=message):
        make(f"gymnax:{name}")
