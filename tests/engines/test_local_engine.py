"""The local engine: the fused engine's numbers without threads, sound and stoppable with them."""

import threading

import jax
import numpy as np
import pytest

from synthetic_returns.acting import actor
from synthetic_returns.acting.host_actor import HostActor
from synthetic_returns.agents.impala.learner import Learner
from synthetic_returns.engines.fused import FusedEngine
from synthetic_returns.engines.local import LocalEngine
from synthetic_returns.engines.settings import FusedSettings, LocalSettings
from synthetic_returns.envs.base import VectorEnvironment
from synthetic_returns.envs.host import JaxEnvironments
from synthetic_returns.training.runs import Run
from synthetic_returns.training.trainer import TrainingStopped, train
from tests.small import UPDATE, small_config
from tests.trees import arrays

CREDIT = pytest.mark.parametrize("credit", ["paper", "episodic"])


def local_config(credit="paper", actors=0, queue_size=1, **settings):
    engine = LocalSettings(actors=actors, queue_size=queue_size)
    return small_config(credit, {"engine": engine}, **settings)


@pytest.fixture
def make_local():
    """Engines whose threads end with the test."""
    made = []

    def make(config):
        made.append(LocalEngine(config, [config.seed]))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


@CREDIT
def test_host_unrolls_are_the_compiled_ones(credit):
    config = local_config(credit)
    network = Learner(config).init(jax.random.key(1)).agent.network
    env, key = VectorEnvironment(config.task), jax.random.key(2)
    state = actor.start(env, network, config.engine.num_envs, key)
    player = HostActor(config.task, network, config.engine.num_envs, key)
    lasts = 0
    for length in (7, 4):
        state, want = actor.unroll(env, network, state, length)
        got = player.unroll(network, length)
        lasts += int(want.timestep.last.sum())
        assert jax.tree.structure(got) == jax.tree.structure(want)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, want)
    assert lasts  # episodes ended and began in between


@CREDIT
def test_in_turns_it_is_the_fused_engine(make_local, credit):
    config = local_config(credit)
    fused = FusedEngine(small_config(credit, {"engine": FusedSettings(stagger=False)}), [0])
    local = make_local(config)
    for _ in range(6):
        fused.step()
        local.step()
    want, got = fused.snapshot(0), local.snapshot(0)
    for name, mine in {"learner": got["learner"], "credit": got.get("credit")}.items():
        expected, found = arrays(want.get(name)), arrays(mine)
        assert expected.keys() == found.keys()
        assert name == "credit" or len(expected) > 10
        for path, array in expected.items():
            np.testing.assert_allclose(found[path], array, rtol=1e-4, atol=1e-6, err_msg=path)
    (report,), (other,) = fused.report(), local.report()
    assert other.pop("policy/lag") == other.pop("policy/lag_max") == 0
    assert other.pop("memory_mb") > 10
    assert report == pytest.approx(other, rel=1e-3, abs=1e-5)
    assert report["episode_steps"] == 5


@CREDIT
def test_stopped_and_resumed_equals_never_stopped(make_local, credit):
    config = local_config(credit)
    whole, first, second = (make_local(config) for _ in range(3))
    for _ in range(6):
        whole.step()
    for _ in range(3):
        first.step()
    second.restore([first.snapshot(0)])
    for _ in range(3):
        second.step()
    want, got = arrays(whole.snapshot(0)), arrays(second.snapshot(0))
    assert want.keys() == got.keys()
    for path, array in want.items():
        np.testing.assert_array_equal(got[path], array, err_msg=path)


@CREDIT
def test_threads_learn_from_every_actor(make_local, monkeypatch, credit):
    config = local_config(credit, actors=2, queue_size=3)
    engine = make_local(config)
    updates, streams = 0, set()
    learn = engine._learner.update
    monkeypatch.setattr(
        engine._learner, "update", lambda unroll: (streams.add(unroll.stream), learn(unroll))
    )
    while updates < 20 or len(streams) < 2:
        engine.step()
        updates += 1
    (report,) = engine.report()
    assert report["episode_steps"] == 5
    # Two actors and a queue: what is learned from is old, but never older than the run.
    assert 0 < report["policy/lag"] <= report["policy/lag_max"] < updates
    assert np.isfinite(report["loss/total"])
    assert "policy/lag" not in engine.report()[0]


def test_actors_run_ahead_of_a_slow_learner_by_the_queue_only(make_local, monkeypatch):
    played = []
    unroll = HostActor.unroll

    def count(self, *args, **kwargs):
        played.append(1)
        return unroll(self, *args, **kwargs)

    monkeypatch.setattr(HostActor, "unroll", count)
    engine = make_local(local_config(actors=1, queue_size=2))
    engine.step()
    threading.Event().wait(1.0)
    # One learned from, two in the queue, one that waits for room in it.
    assert len(played) == 4


def broken_after(steps, monkeypatch, error):
    step, done = JaxEnvironments.step, []

    def step_or_break(self, action):
        done.append(1)
        if len(done) > steps:
            raise error
        return step(self, action)

    monkeypatch.setattr(JaxEnvironments, "step", step_or_break)


@pytest.mark.parametrize("error", [OSError("the ROM is gone"), SystemExit(3)])
def test_a_failing_actor_stops_the_run_which_can_go_on(tmp_path, monkeypatch, error):
    config = local_config(actors=1, steps=8 * UPDATE)
    with monkeypatch.context() as patch:
        broken_after(12, patch, error)  # two unrolls of five, and two steps
        with pytest.raises(
            TrainingStopped,
            # Up to two unrolls were learned from before the learner saw it.
            match=rf"step (0|20|40) of 160 \(actor 0 failed, {type(error).__name__}: .*--resume",
        ) as stopped:
            train(config, out=tmp_path / "run")
    failed = stopped.value.__cause__
    assert failed is not None
    assert failed.__cause__ is error
    run = train(config, out=tmp_path / "run", resume=True)
    assert run.summary()["env_steps"] == 160
    np.testing.assert_array_equal(
        Run.open(run.path).read_metrics()["env_steps"], [40, 80, 120, 160]
    )


def test_no_thread_outlives_the_run(tmp_path, monkeypatch):
    started, start = [], threading.Thread.start

    def start_and_note(self):
        started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", start_and_note)
    train(local_config("none", actors=2), out=tmp_path / "run")
    actors = [thread for thread in started if thread.name.startswith("actor")]
    assert len(actors) == 2
    assert not any(thread.is_alive() for thread in actors)


def test_episodes_after_resuming_are_others(make_local):
    config = local_config(actors=1)
    engine = make_local(config)
    engine.step()
    first = engine._actors[0]._keys
    other = make_local(config)
    other.restore([engine.snapshot(0)])
    other.step()
    assert not np.array_equal(
        jax.random.key_data(first), jax.random.key_data(other._actors[0]._keys)
    )


def test_what_the_local_engine_cannot_do_is_refused():
    with pytest.raises(ValueError, match="2 seeds and the engine 'local' trains one"):
        LocalEngine(local_config(), [0, 1])
    with pytest.raises(ValueError, match="actors is -1; use 0"):
        local_config(actors=-1)
