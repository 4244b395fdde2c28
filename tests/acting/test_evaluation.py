"""Evaluation: whole episodes, equally many from every environment, and an honest interval."""

import jax
import numpy as np
import pytest

from synthetic_returns.acting import evaluation
from synthetic_returns.acting.evaluation import Evaluation, evaluate
from tests.acting.counting import ACTIONS, CountingEnv, CountingNetwork

ENV = CountingEnv()


def lengths(seed, num_envs, rounds):
    """The length of each episode, ``[rounds, num_envs]``, from the keys of the environments."""
    env_key, _ = jax.random.split(jax.random.key(seed))
    keys = jax.random.split(env_key, num_envs)
    start = jax.jit(jax.vmap(ENV.start))
    found = []
    for _ in range(rounds):
        keys, (state, _) = start(keys)
        found.append(np.asarray(state.length))
    return np.array(found)


def test_totals_are_those_of_the_first_episodes_of_every_environment(monkeypatch):
    monkeypatch.setattr(evaluation, "MAX_ENVS", 4)
    result = evaluate(ENV, CountingNetwork(), 10, seed=3)
    # 10 episodes of 4 environments: two rounds of all, and the first two of a third.
    want = lengths(3, 4, 3).ravel()[:10]
    assert result.episodes == 10
    assert len(np.unique(want)) > 2
    np.testing.assert_array_equal(result.totals["episode_steps"], want)
    # The step of time t takes the action t % 3 and earns 10 t + action.
    earned = [sum(10 * t + t % ACTIONS for t in range(1, n + 1)) for n in want]
    np.testing.assert_array_equal(result.totals["episode_return"], earned)
    np.testing.assert_array_equal(result.totals["success"], np.ones(10))
    np.testing.assert_array_equal(result.totals["zero"], want // ACTIONS)


def test_summary_has_the_mean_of_everything_and_an_interval():
    totals = {"episode_return": np.array([1.0, 2, 6]), "success": np.array([0.0, 1, 1])}
    summary = Evaluation(totals).summary()
    assert summary["episodes"] == 3
    assert summary["return_mean"] == 3
    assert summary["success"] == pytest.approx(2 / 3)
    assert 1 <= summary["return_low"] < 3 < summary["return_high"] <= 6


def test_no_episodes_is_refused():
    with pytest.raises(ValueError, match=r"episodes is 0.*at least 1"):
        evaluate(ENV, CountingNetwork(), 0, seed=0)
