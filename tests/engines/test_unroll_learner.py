"""The learner of actors that run apart: a batch of several is the batch of one."""

import dataclasses

import jax
import numpy as np
import pytest

from synthetic_returns.acting import actor
from synthetic_returns.agents.optimizer_settings import RMSPropSettings
from synthetic_returns.credit.data.segments import segment_of
from synthetic_returns.credit.view import View
from synthetic_returns.engines.credit import make_driver
from synthetic_returns.engines.unroll_learner import Unroll, UnrollLearner
from synthetic_returns.envs.base import VectorEnvironment
from synthetic_returns.presets import preset
from tests.small import METHODS, SETTINGS, small_config
from tests.trees import arrays


def unrolls_of(config, learner, count):
    """Consecutive unrolls of one batch of environments."""
    env = VectorEnvironment(config.task)
    state = actor.start(env, learner.agent.network, config.engine.num_envs, jax.random.key(3))
    for _ in range(count):
        state, trajectory = actor.unroll(
            env, learner.agent.network, state, config.engine.unroll_length
        )
        yield trajectory


def columns(trajectory, part):
    """Half of a batch."""
    core = jax.tree.map(lambda x: x[part], trajectory.core)
    rest = dataclasses.replace(trajectory, core=None)
    return dataclasses.replace(jax.tree.map(lambda x: x[:, part], rest), core=core)


@pytest.mark.parametrize("credit", ["paper", "episodic"])
def test_unrolls_side_by_side_teach_what_one_wide_unroll_does(credit):
    # Adam would make steps out of rounding errors.
    settings = {"optimizer": RMSPropSettings(epsilon=1e-4)}
    if credit == "episodic":
        settings |= {"credit": METHODS["none"]}
    config = small_config(credit, settings)
    wide = UnrollLearner(config, 0, streams=1)
    halves = UnrollLearner(config, 0, streams=3, num_envs=2)
    for trajectory in unrolls_of(config, wide, 3):
        wide.update(Unroll(0, 0, trajectory))
        halves.update(
            Unroll(2, 0, columns(trajectory, slice(0, 2))),
            Unroll(0, 0, columns(trajectory, slice(2, 4))),
        )
    want, got = arrays(wide.snapshot(running=False)), arrays(halves.snapshot(running=False))
    assert want.keys() == got.keys()
    for path, array in want.items():
        np.testing.assert_allclose(got[path], array, rtol=1e-4, atol=1e-6, err_msg=path)
    if credit == "paper":
        memory, first, second = wide._memories[0], halves._memories[2], halves._memories[0]
        assert memory is not None
        assert first is not None
        assert second is not None
        np.testing.assert_array_equal(memory.steps, np.concatenate([first.steps, second.steps]))
        assert np.any(memory.steps)
        np.testing.assert_allclose(memory.states[:2], first.states, rtol=1e-5, atol=1e-6)
    report, other = wide.report(), halves.report()
    assert report["episode_steps"] == other["episode_steps"] == 5
    assert report["loss/total"] == pytest.approx(other["loss/total"], rel=1e-4)


def test_what_is_only_observed_is_remembered_as_what_is_learned_from():
    config = small_config("paper", {"optimizer.learning_rate": 0.0})
    one, other = (UnrollLearner(config, 0, streams=1) for _ in range(2))
    for trajectory in unrolls_of(config, one, 3):
        one.update(Unroll(0, 0, trajectory))
        other.observe(Unroll(0, 0, trajectory))
    assert other.updates == 0
    want, got = arrays(one._memories[0]), arrays(other._memories[0])
    assert len(want) == 3
    for path, array in want.items():
        np.testing.assert_allclose(got[path], array, rtol=1e-5, atol=1e-6, err_msg=path)
    assert one.report()["episode_return"] == other.report()["episode_return"]


def test_an_episode_that_was_cut_off_is_not_pieced_together_with_another():
    """An episode of 5 steps begins in the second unroll of 5 and ends in the third."""
    config = small_config("episodic")
    learner, whole = (UnrollLearner(config, 0, streams=1) for _ in range(2))
    _, begins, ends = unrolls_of(config, learner, 3)
    assert np.all(begins.timestep.first[1])
    assert np.all(ends.timestep.last[1])
    for life, trajectory in enumerate((begins, ends)):
        learner.observe(Unroll(0, 0, trajectory, life))
        whole.observe(Unroll(0, 0, trajectory))
    assert "episode_steps" not in learner.report()
    assert whole.report()["episode_steps"] == 5
    assert learner._driver is not None
    assert whole._driver is not None
    assert len(learner._driver.buffer) == 0
    assert len(whole._driver.buffer) == 4


def test_only_what_the_model_sees_of_running_episodes_is_held():
    """Whole frames of long episodes would take many times as much memory."""
    settings = {
        "credit": METHODS["episodic"],
        "credit.trust": False,
        "view": View(rows=(1, 3), columns=(0, 4)),
        "engine.unroll_length": 30,
    }
    config = preset("catch-delayed", runs=2).changed(SETTINGS | settings)
    learner = UnrollLearner(config, 0, streams=1)
    driver = make_driver(config, 0)
    assert driver is not None
    (trajectory,) = unrolls_of(config, learner, 1)
    ((item, assignment),) = driver.follow(segment_of(trajectory, config.view), trajectory)
    assert item is trajectory
    assert driver.snapshot()["running"]["observation"].shape[2:] == (2, 4, 1)
    states = driver.buffer.length[0] + 1
    whole = np.asarray(trajectory.timestep.observation)
    np.testing.assert_array_equal(
        driver.buffer.arrays["observation"][0, :states], whole[:states, 0, 1:3, 0:4]
    )
    assert np.any(assignment.reward)
