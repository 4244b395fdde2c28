"""The cluster engine without a cluster: what arrives is learned from, whatever actors do."""

import logging

import equinox as eqx
import jax
import numpy as np
import pytest

from synthetic_returns.agents.impala.learner import Learner
from synthetic_returns.engines.cluster import crew
from synthetic_returns.engines.cluster.actor_process import ActorProcess, to_weights
from synthetic_returns.engines.cluster.crew import PATIENCE
from synthetic_returns.engines.cluster.engine import ClusterEngine
from synthetic_returns.engines.cluster.unroll_checks import find_fault
from synthetic_returns.engines.engine import ActorFailed, make_engine
from synthetic_returns.engines.settings import ClusterSettings
from synthetic_returns.engines.shapes import expected_trajectory
from synthetic_returns.training.checkpoints import Checkpoints
from synthetic_returns.types import StepType
from tests.engines.fake_ray import Away, FakeRay, Lost
from tests.small import small_config
from tests.trees import arrays

CREDIT = pytest.mark.parametrize("credit", ["paper", "episodic"])


def cluster_config(credit="episodic", actors=2, **settings):
    engine = {f"engine.{name}": value for name, value in settings.items()}
    return small_config(credit, {"engine": ClusterSettings(actors=actors), **engine})


@pytest.fixture
def ray(monkeypatch):
    monkeypatch.setattr(crew, "REST_SECONDS", 0.0)
    return FakeRay().install(monkeypatch)


def run(config, steps):
    engine = ClusterEngine(config, [0])
    for _ in range(steps):
        engine.step()
    return engine, engine.report()[0]


@CREDIT
def test_every_actor_is_learned_from(ray, credit):
    engine, report = run(cluster_config(credit, actors=3), 12)
    assert report["actors/delivering"] == 3
    assert report["episode_steps"] == 5
    assert np.isfinite(report["loss/total"])
    assert report["actors/restarted"] == report["actors/poisoned"] == report["actors/stale"] == 0
    assert report["actors/stale_steps"] == 0
    assert 0 <= report["policy/lag"] <= report["policy/lag_max"] <= 4
    assert 0 <= report["learner/busy"] <= 1
    assert ray.puts <= 13  # weights are sent once for each version, however many actors
    engine.close()
    assert ray.killed == 3


def test_an_agent_with_a_replay_learns_from_every_actor(ray):
    settings = {"engine": ClusterSettings(actors=3), "agent.replay.capacity": 600}
    engine, report = run(small_config("episodic", settings, agent="r2d2"), 12)
    assert report["actors/delivering"] == 3
    assert report["replay/steps"] >= 12 * 20
    assert np.isfinite(report["loss/total"])
    engine.close()


def test_what_was_begun_first_is_learned_from_first(ray, monkeypatch):
    monkeypatch.setattr(ray, "wait", lambda calls, **_: (calls[::-1], []))  # all have arrived
    streams = []
    engine = ClusterEngine(cluster_config(actors=3), [0])
    update = engine._learner.update
    monkeypatch.setattr(
        engine._learner,
        "update",
        lambda *batch: (streams.extend(u.stream for u in batch), update(*batch)),
    )
    for _ in range(6):
        engine.step()
    assert streams == [0, 1, 2, 0, 1, 2]
    engine.close()


def test_the_actors_of_a_batch_are_different_ones(ray, monkeypatch):
    batches = []
    engine = ClusterEngine(cluster_config(actors=3, actor_envs=2), [0])
    update = engine._learner.update
    monkeypatch.setattr(engine._learner, "update",
                        lambda *unrolls: batches.append(unrolls) or update(*unrolls))  # fmt: skip
    # One actor is always the first to be done.
    ray.choose = lambda calls: next((c for c in calls if c.stream == 0), calls[0])
    for _ in range(8):
        engine.step()
    assert all(len({unroll.stream for unroll in batch}) == 2 for batch in batches)
    assert {unroll.stream for batch in batches for unroll in batch} == {0, 1, 2}
    shapes = {batch[0].trajectory.action.shape for batch in batches}
    assert shapes == {(5, 2)}


@pytest.mark.parametrize(("max_lag", "under_way"), [(1, 2), (2, 4), (20, 6)])
def test_the_number_of_unrolls_under_way_is_bounded(ray, max_lag, under_way):
    """Six actors, two in an update: no more under way than that many updates take."""
    engine, report = run(cluster_config(actors=6, actor_envs=2, max_lag=max_lag), 9)
    assert ray.most == under_way
    assert report["policy/lag_max"] <= max_lag
    assert report["actors/stale"] == 0
    assert report["actors/delivering"] == 6  # they take turns
    assert engine._crew is not None
    assert len(engine._crew._playing) + len(engine._crew._arrived) <= under_way


def test_bytes_are_counted(ray):
    _, report = run(cluster_config(actors=1), 3)
    # Six steps of an observation, type, reward, discount and events; five of action, logits and
    # value; a clock of four bytes once.
    task = cluster_config().task
    step = 4 * task.observation_shape[0] + 1 + 4 + 4 + 4 * len(task.event_names)
    sent = 6 * step + 5 * (4 + 4 * task.num_actions + 4) + 4
    assert report["actors/bytes_per_step"] == sent / 5


def test_a_poisoned_unroll_is_dropped_counted_and_named(ray, caplog):
    def poison(call, trajectory):
        if call.stream == 1 and call.life == 0:
            reward = trajectory.timestep.reward.copy()
            reward[3, 2] = np.nan
            return eqx.tree_at(lambda t: t.timestep.reward, trajectory, reward)
        return trajectory

    ray.change = poison
    with caplog.at_level(logging.WARNING):
        engine, report = run(cluster_config(actors=2), 10)
    assert report["actors/poisoned"] == 1
    assert "actor 1 starts again in 0 s: its unroll was dropped" in caplog.text
    assert "timestep.reward is nan at [3, 2]" in caplog.text
    assert report["actors/delivering"] == 2
    assert np.isfinite(report["loss/total"])
    weights = [x for p, x in arrays(engine.snapshot(0)).items() if "weight" in p]
    assert all(np.all(np.isfinite(x)) for x in weights)


def test_an_actor_that_died_begins_new_episodes(ray):
    seen = {}

    def die(call, trajectory):
        if call.stream == 0 and len(ray.calls) > 6 and call.life == 0:
            raise Lost("its node is gone")
        seen.setdefault((call.stream, call.life), trajectory)
        return trajectory

    ray.change = die
    engine, report = run(cluster_config(actors=2, stagger=False), 12)
    assert report["actors/restarted"] == 1
    assert np.all(seen[0, 1].timestep.step_type[0] == StepType.FIRST)
    # Nothing of the episodes that were cut off is left: all that finished are whole.
    assert report["episode_steps"] == 5
    assert report["actors/delivering"] == 2
    engine.close()


def test_an_actor_that_always_fails_stops_training(ray):
    def die(call, trajectory):
        raise Lost("the ROM is gone")

    ray.change = die
    engine = ClusterEngine(cluster_config(actors=1), [0])
    with pytest.raises(
        ActorFailed, match=rf"actor 0 failed {PATIENCE + 1} times in a row: Lost: the ROM"
    ):
        engine.step()


def test_an_actor_that_cannot_be_reached_is_waited_for_while_the_others_play(ray):
    tries = []

    def be_away(call, trajectory):
        if call.stream == 0 and len(tries) < 2 * PATIENCE:
            tries.append(call.life)
            raise Away("no connection")
        return trajectory

    ray.change = be_away
    engine, report = run(cluster_config(actors=2, stagger=False), 40)
    assert len(tries) == 2 * PATIENCE  # far more than errors would be forgiven
    assert report["actors/restarted"] == 1  # one absence, however long
    assert report["actors/delivering"] == 2
    engine.close()


def test_an_actor_rests_longer_after_each_failure(ray, monkeypatch):
    monkeypatch.setattr(crew, "REST_SECONDS", 1.0)
    now = [0.0]
    monkeypatch.setattr(crew.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(crew.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + 0.25))
    tried = []

    def be_away(call, trajectory):
        tried.append(now[0])
        if len(tried) < 5:
            raise Away("no connection")
        return trajectory

    ray.change = be_away
    engine, _ = run(cluster_config(actors=1, stagger=False), 1)
    assert tried == [0, 1, 3, 7, 15]
    engine.close()


def test_silence_of_all_actors_stops_training(ray, monkeypatch):
    monkeypatch.setattr(crew, "SILENCE_SECONDS", 0.05)
    ray.choose = lambda calls: None
    engine = ClusterEngine(cluster_config(actors=2), [0])
    with pytest.raises(ActorFailed, match=r"no actor has sent anything .* each of the 2 actors"):
        engine.step()


def test_a_slow_actor_does_not_stall_the_rest_and_what_it_brings_too_late_is_not_learned(
    ray, monkeypatch
):
    slow = {0}
    ray.choose = lambda calls: next((c for c in calls if c.stream not in slow), None)
    engine = ClusterEngine(cluster_config("paper", actors=2, max_lag=4), [0])
    for _ in range(8):
        engine.step()
    report = engine.report()[0]
    assert report["actors/delivering"] == 1
    assert report["policy/lag_max"] <= 2
    learned = []
    update = engine._learner.update
    monkeypatch.setattr(engine._learner, "update",
                        lambda *unrolls: learned.append(unrolls) or update(*unrolls))  # fmt: skip
    slow.clear()
    memory = engine._learner._memories[0]
    assert memory is not None
    assert not np.any(memory.steps)
    while not engine._stale:
        engine.step()
    remembered = engine._learner._memories[0]
    assert remembered is not None
    assert np.all(remembered.steps > 0)  # its episodes are followed all the same
    assert all(engine._learner.updates - u.version <= 5 for batch in learned for u in batch)
    report = engine.report()[0]
    assert report["actors/stale"] == 1
    assert report["actors/stale_steps"] == 4 * 5  # environments times steps of the one unroll


def test_stale_unrolls_are_counted_over_all_sessions_of_a_run(ray, tmp_path):
    config = cluster_config()
    engine, _ = run(config, 1)
    engine._stale = 3
    store, resumed = Checkpoints(tmp_path), ClusterEngine(config, [0])
    store.save(1, engine.snapshot(0))
    resumed.restore([store.restore(resumed.snapshot(0))[1]])
    resumed.step()
    assert resumed.report()[0]["actors/stale_steps"] == 3 * 4 * 5
    before = {name: x for name, x in engine.snapshot(0).items() if name != "stale"}
    store.save(2, before)
    resumed.restore([store.restore(resumed.snapshot(0))[1]])
    assert resumed._stale == 0


@CREDIT
def test_a_restored_engine_goes_on_with_other_episodes(ray, credit):
    config = cluster_config(credit, actor_envs=4)
    engine, _ = run(config, 3)
    snapshot = engine.snapshot(0)
    other = ClusterEngine(config.changed({"engine.actors": 3}), [0])  # the cluster has grown
    template = arrays(other.snapshot(0))
    assert {path: x.shape for path, x in template.items()} == {
        path: x.shape for path, x in arrays(snapshot).items()
    }
    other.restore([snapshot])
    other.step()
    assert ray.calls[-1].life == 3
    assert other._learner.updates == 4


def test_a_run_is_closed_and_opened_again_in_one_session_of_ray(ray):
    config = cluster_config()
    first, _ = run(config, 2)
    snapshot = first.snapshot(0)
    first.close()
    second = ClusterEngine(config, [0])
    second.restore([snapshot])
    second.step()
    assert second._learner.updates == 3
    beside, _ = run(config, 1)  # and two of them may run at once
    beside.close()
    second.close()
    assert ray.killed == 6


def test_another_life_has_other_luck_and_the_same_one_goes_on():
    config = cluster_config()
    weights = to_weights(Learner(config).init(jax.random.key(0)).agent.network, 0)
    process, same = (ActorProcess(config, 4, 0, 0) for _ in range(2))
    one, two, again = (process.unroll(weights, life) for life in (0, 0, 1))
    np.testing.assert_array_equal(one.action, same.unroll(weights, 0).action)
    np.testing.assert_array_equal(one.timestep.observation[-1], two.timestep.observation[0])
    assert np.any(again.action != one.action)
    assert find_fault(one, expected_trajectory(config, 4), config.task.num_actions) is None


def spoiled(trajectory, name, change):
    def part(trajectory):
        return getattr(trajectory if name in ("action", "logits") else trajectory.timestep, name)

    return eqx.tree_at(part, trajectory, change(part(trajectory)))


def put(array, value):
    array = array.copy()
    array[(1,) * array.ndim] = value
    return array


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("reward", lambda x: put(x, np.inf), "timestep.reward is inf at [1, 1]"),
        ("observation", lambda x: put(x, np.nan), "timestep.observation is nan at [1, 1, 1]"),
        ("observation", lambda x: x[:-1], "timestep.observation is float32[5, 4"),
        ("reward", lambda x: x.astype(np.float64), "timestep.reward is float64[6, 4], not float32"),
        ("logits", lambda x: put(x, np.nan), "logits is nan"),
        ("action", lambda x: put(x, 9), "action holds 0 .. 9; there are"),
        ("step_type", lambda x: put(x, 7), "step_type holds 0 .. 7"),
        ("events", lambda x: {}, "of other parts"),
    ],
)
def test_faults_are_found_and_named(name, change, words):
    config = cluster_config()
    weights = to_weights(Learner(config).init(jax.random.key(0)).agent.network, 0)
    good = ActorProcess(config, 4, 0, 0).unroll(weights, 0)
    fault = find_fault(
        spoiled(good, name, change), expected_trajectory(config, 4), config.task.num_actions
    )
    assert fault is not None
    assert words in fault


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"actor_envs": 3}, "actor_envs is 3; it must divide num_envs, 4"),
        ({"actor_envs": 1}, "actors is 2; an update takes unrolls of 4 different actors"),
        ({"max_lag": 0}, "max_lag is 0"),
    ],
)
def test_what_it_cannot_do_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        cluster_config(**settings)


@pytest.mark.parametrize(("actors", "envs"), [(1, 32), (2, 32), (4, 16), (8, 8), (256, 1)])
def test_an_update_takes_at_most_half_of_the_actors(actors, envs):
    settings = ClusterSettings(num_envs=32, actors=actors)
    assert settings.envs_per_actor == envs
    assert settings.unrolls_per_update == 32 // envs <= max(1, actors // 2)


def test_it_is_found_by_name_and_trains_one_seed():
    assert isinstance(make_engine(cluster_config(), [0]), ClusterEngine)
    with pytest.raises(ValueError, match="2 seeds and the engine 'cluster' trains one"):
        make_engine(cluster_config(), [0, 1])
