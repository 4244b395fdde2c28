"""The peers play the game that ours plays, and can all be set up and run."""

import importlib
import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"

pytestmark = pytest.mark.skipif(not PEERS.exists(), reason="an sdist has no benchmarks")


def test_every_peer_can_be_set_up_and_swept():
    run = runpy.run_path(str(PEERS / "run.py"))
    setup = (PEERS / "setup.sh").read_text()
    (everything,) = (line.split() for line in setup.splitlines() if "set --" in line)
    assert everything == ["set", "--", *run["SCRIPTS"]]
    assert run["SETTINGS"].keys() == run["SCRIPTS"].keys()
    for peer, script in run["SCRIPTS"].items():
        assert (PEERS / script).exists()
        assert (PEERS / f"requirements-{peer}.txt").exists()


def test_the_catch_of_jax_is_that_of_numpy(monkeypatch):
    pytest.importorskip("gymnax")
    monkeypatch.syspath_prepend(str(PEERS))
    catch = importlib.import_module("catch")
    env = importlib.import_module("catch_gymnax").CatchGymnax()
    reset, step = jax.jit(env.reset_env), jax.jit(env.step)
    game = catch.CatchBatch(1)
    observation, state = reset(jax.random.key(0))
    actions = np.random.default_rng(0).integers(catch.NUM_ACTIONS, size=catch.EPISODE_STEPS)
    columns, done = set(), False
    for time, action in enumerate(actions):
        game._column[0] = int(state.column)  # the balls that JAX drew
        np.testing.assert_array_equal(observation, game._observe()[0])
        columns.add(int(state.column))
        key = jax.random.fold_in(jax.random.key(1), time)
        observation, state, reward, done, _ = step(key, state, jnp.int32(action))
        _, rewards, dones = game.step(np.array([action]))
        assert (float(reward), bool(done)) == (rewards[0], dones[0])
    assert bool(done)  # and the next episode has begun
    assert (int(state.time), int(state.paddle)) == (0, catch.SIZE // 2)
    assert len(columns) > 3
    assert min(columns) >= 0
    assert max(columns) < catch.SIZE
