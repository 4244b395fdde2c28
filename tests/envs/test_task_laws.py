"""Laws that every registered task obeys; those about dynamics hold for the tasks in JAX."""

import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.envs.registry import ATARI_TASKS, TASKS, find_task, make
from synthetic_returns.types import StepType
from tests.envs.playing import BATCH, play, random_policy, scripted_policy, unroll

over_jax_tasks = pytest.mark.parametrize("name", TASKS)
over_all_tasks = pytest.mark.parametrize("name", [*TASKS, *ATARI_TASKS])


def stack(*steps):
    return np.stack([np.asarray(step) for step in steps])


@functools.cache
def episodes(name, policy):
    """Many episodes of a task: to compile a policy takes longer than to play it often."""
    number = 4000 if policy is random_policy else 500
    return play(make(name), policy, seed=0, episodes=number)


def describe(tree):
    return jax.tree.map(lambda x: (x.shape, x.dtype), tree)


@over_jax_tasks
def test_step_keeps_every_shape_and_dtype(name):
    env = make(name)
    state, first = jax.eval_shape(env.reset, jax.random.key(0))
    next_state, later = jax.eval_shape(env.step, state, jnp.int32(0))
    assert describe(next_state) == describe(state)
    assert describe(later) == describe(first)
    assert first.observation.shape == env.observation_shape
    assert {first.observation.dtype, first.reward.dtype, first.discount.dtype} == {
        jnp.dtype("float32")
    }
    assert first.step_type.dtype == jnp.int8


@over_jax_tasks
def test_steps_follow_the_grammar(name):
    env = make(name)
    _, steps = unroll(name)
    first, last = steps.step_type == StepType.FIRST, steps.step_type == StepType.LAST
    assert first[0].all()
    np.testing.assert_array_equal(first[1:], last[:-1])
    assert last.sum() >= 3 * BATCH
    assert (steps.reward[first] == 0).all()
    assert (steps.discount[first] == 1).all()
    assert not env.truncates
    assert (steps.discount[last] == 0).all()
    for events in steps.events.values():
        assert (events[first] == 0).all()

    for column in range(BATCH):
        starts, ends = np.flatnonzero(first[:, column]), np.flatnonzero(last[:, column])
        lengths = ends - starts[: len(ends)]
        assert 1 <= lengths.min() <= lengths.max() <= env.max_episode_steps
        for start, end in zip(starts, ends, strict=False):
            assert 0 <= steps.events["success"][start : end + 1, column].sum() <= 1 + 1e-6


@over_jax_tasks
def test_observations_lie_in_their_space(name):
    env = make(name)
    _, steps = unroll(name)
    assert steps.observation.shape[2:] == env.observation_shape
    assert steps.observation.min() >= 0
    assert steps.observation.max() <= 1
    assert np.unique(steps.observation.reshape(-1, steps.observation[0, 0].size), axis=0).size > 1


@over_jax_tasks
def test_a_batch_plays_the_same_episodes_as_one_environment(name):
    env = make(name)
    actions, steps = unroll(name)
    jitted_start, jitted_step = jax.jit(env.start), jax.jit(env.step)
    key = jax.random.key(1)
    state, played = None, []
    for action in (None, *actions[:, 1]):
        if not played or played[-1].last:
            key, (state, timestep) = jitted_start(key)
        else:
            state, timestep = jitted_step(state, action)
        played.append(timestep)
    assert sum(bool(timestep.first) for timestep in played) >= 3
    expected = jax.tree.map(lambda x: x[:, 1], steps)
    jax.tree.map(np.testing.assert_array_equal, expected, jax.tree.map(stack, *played))


@over_jax_tasks
def test_the_longest_episode_is_as_long_as_the_task_says(name):
    longest = [
        episodes(name, policy)["length"].max() for policy in (random_policy, scripted_policy)
    ]
    assert max(longest) == make(name).max_episode_steps


@over_jax_tasks
def test_random_policy_has_the_documented_return(name):
    played = episodes(name, random_policy)["return"]
    margin = 4 * played.std() / np.sqrt(len(played)) + 0.005
    assert played.mean() == pytest.approx(TASKS[name].random_return, abs=margin)


@over_jax_tasks
def test_scripted_policy_has_the_documented_return_and_always_succeeds(name):
    played = episodes(name, scripted_policy)
    margin = 4 * played["return"].std() / np.sqrt(500) + 0.06
    assert played["return"].mean() == pytest.approx(TASKS[name].optimal_return, abs=margin)
    np.testing.assert_allclose(played["success"], 1, atol=1e-5)


@over_all_tasks
def test_all_that_is_known_about_a_task_is_in_its_file(name):
    task = find_task(name)
    module = importlib.import_module(task.environment.__module__)
    assert task in module.TASKS
    assert all(find_task(other.name) is other for other in module.TASKS)
    assert task.name == name
    assert 10 < len(task.description) < 80
    assert np.isfinite(task.random_return)


@over_all_tasks
def test_a_task_has_a_scripted_policy_or_says_why_not(name):
    task = find_task(name)
    scripted = hasattr(task.environment, "optimal_action") and make(name).has_script
    assert scripted == (not task.unscripted)
    assert np.isfinite(task.optimal_return) or task.unscripted


@over_all_tasks
def test_events_are_documented(name):
    env = make(name)
    assert tuple(find_task(name).events) == env.event_names
    assert "success" in env.event_names
    assert all(find_task(name).events.values())


@over_all_tasks
def test_marks_phases_and_measures_are_about_the_task(name):
    env = make(name)
    of_file = {event for task in importlib.import_module(type(env).__module__).TASKS
               for event in task.events}  # fmt: skip
    assert env.event_marks.keys() <= of_file
    starts = [start for _, start in env.phases]
    assert starts == sorted(starts)
    assert all(0 <= start < env.max_episode_steps for start in starts)
    if (measure := env.credit_measure) is not None:
        zeros = np.zeros((env.max_episode_steps + 1, 3))
        events = dict.fromkeys(env.event_names, zeros)
        value, detail = measure.measure(zeros, events, zeros > 0)
        assert "3 episodes" in detail
        assert not value > 0, "nothing happened"


@over_jax_tasks
def test_few_states_are_all_states(name):
    states = make(name).few_states
    if states is None:
        return
    assert len(states.labels) == len(states.observations)
    assert 0 <= states.decisive < len(states.labels)
    _, steps = unroll(name)
    seen = steps.observation.reshape(-1, *steps.observation.shape[2:])
    np.testing.assert_array_equal(states.observations[states.indices(seen)], seen)


@over_jax_tasks
def test_steps_have_the_events_of_the_task(name):
    env = make(name)
    _, first = jax.eval_shape(env.reset, jax.random.key(0))
    _, later = jax.eval_shape(env.step, *jax.eval_shape(env.reset, jax.random.key(0))[:1], 0)
    assert set(first.events) == set(later.events) == set(env.event_names)


@over_jax_tasks
def test_tasks_are_hashable_and_equal_by_value(name):
    assert make(name) == make(name)
    assert hash(make(name)) == hash(make(name))


@over_jax_tasks
def test_scene_is_small_pixels(name):
    env = make(name)
    state, _ = jax.jit(env.reset)(jax.random.key(0))
    pixels = env.render(state)
    assert pixels.dtype == np.uint8
    assert pixels.ndim == 3
    assert pixels.shape[2] == 3
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) >= 3, "the scene shows too little"
