"""Engines with a replay: credit in it, resuming, what is refused."""

import numpy as np
import pytest

from synthetic_returns.agents.r2d2.settings import BanditSettings
from synthetic_returns.agents.replay.relabelling import relabel
from synthetic_returns.agents.replay.settings import UnrollReplaySettings
from synthetic_returns.credit.data.episode import Episode
from synthetic_returns.engines.engine import make_engine
from synthetic_returns.engines.fused import FusedEngine
from synthetic_returns.engines.settings import LocalSettings
from synthetic_returns.training.metrics import read_metrics
from synthetic_returns.training.trainer import train
from synthetic_returns.types import StepType
from tests.credit.methods import (
    REPLAY,
    Fickle,
    NoveltyAdvance,
    Taken,
    Uniform,
    UniformAdvance,
)
from tests.small import UPDATE, small_config
from tests.trees import arrays

MIXED = UnrollReplaySettings(share=0.5, capacity=12 * UPDATE, warmup=3 * UPDATE)


def make_config(settings=None, /, credit="none", **more):
    return small_config(credit, settings, agent="r2d2", **more)


def replay_of(engine):
    assert engine._replaying is not None
    return engine._replaying._replay


def whole_episodes(replay):
    """The rows of every episode in the replay that is there from its beginning to its end."""
    stored = replay.arrays
    kind = stored["step_type"][0]
    order = np.concatenate(
        [
            np.arange(replay.unroll_length) + n % (len(kind) // replay.unroll_length) * 5
            for n in range(replay.oldest(0), int(replay.count[0]))
        ]
    )
    for env in range(kind.shape[1]):
        begun = None
        for at, row in enumerate(order):
            if kind[row, env] == StepType.FIRST:
                begun = at
            if kind[row, env] == StepType.LAST and begun is not None:
                yield env, order[begun : at + 1]
                begun = None


@pytest.mark.parametrize("kind", [NoveltyAdvance, Fickle, Uniform, UniformAdvance])
def test_what_is_kept_is_paid_by_what_is_known_now(kind):
    """For every whole episode: the credit that a method gives it alone, with its settlement."""
    engine = FusedEngine(make_config({"credit": kind(replay=REPLAY), "agent.lstm_size": 0}), [0])
    for _ in range(17):  # more than fits, so that the oldest episodes have lost their beginning
        engine.step()
    driver, replay = engine._drivers[0], replay_of(engine)
    rewards = replay.arrays["reward"]
    rewards[:] = np.random.default_rng(0).normal(size=rewards.shape)  # they are rare in this task
    before = replay.arrays["credit"].copy()
    relabel(replay, driver)
    # Of an episode that has lost its beginning, every step keeps what it was paid.
    oldest = np.arange(5) + replay.oldest(0) % 12 * 5
    for env in range(4):
        first = replay.arrays["step_type"][0, oldest, env] == StepType.FIRST
        rows = oldest[~np.logical_or.accumulate(first)]
        np.testing.assert_array_equal(replay.arrays["credit"][0, rows, env], before[0, rows, env])
    compared = 0
    newest = {int(row) for row in _newest_rows(replay)}
    for env, rows in whole_episodes(replay):
        if newest & set(rows.tolist()):
            continue
        stored = {name: array[0, rows, env] for name, array in replay.arrays.items()}
        episode = Episode(
            observation=stored["observation"],
            reward=stored["reward"][1:],
            discount=stored["discount"][1:],
            action=stored["action"][:-1],
        )
        want = np.asarray(driver._credit_of(episode).reward)[:, 0]
        np.testing.assert_allclose(stored["credit"][:-1], want, rtol=1e-4, atol=1e-4)
        if kind.conserves:
            assert abs(stored["credit"][:-1].sum()) < 1e-3 * max(1, np.abs(want).max())
        compared += 1
    assert compared > 10
    assert np.abs(replay.arrays["credit"]).max() > 0.1


def _newest_rows(replay):
    """Of the unrolls in which episodes are running, and of one whose last state is not known."""
    blocks = replay.arrays["reward"].shape[1] // replay.unroll_length
    numbers = (int(replay.count[0]) - np.arange(1, 4)) % blocks
    return np.concatenate([np.arange(5) + number * 5 for number in numbers])


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_credit_is_at_most_a_share_of_the_replay_old(share):
    """Fickle credit changes with every episode: what is stored shows when it was paid."""
    settings = {"credit": Fickle(replay=REPLAY), "agent.replay.relabel": share}
    engine = FusedEngine(make_config(settings), [0])
    changed = []
    for _ in range(10):
        before = replay_of(engine).arrays["credit"].copy()
        engine.step()
        now = replay_of(engine).arrays["credit"]
        old = before != 0
        changed.append(bool(np.any(now[old] != before[old])))
    assert any(changed) == (share > 0)
    assert not all(changed)


def test_nothing_is_learned_before_the_warm_up_and_all_is_reported():
    """With the paper's method, whose loss is a part of the agent's, and a bandit."""
    settings = {"agent.bandit": BanditSettings(arms=3, random=0.0)}
    engine = FusedEngine(make_config(settings, credit="paper"), [0])
    before = arrays(engine.agent(0).credit)
    engine.step()
    assert "loss/total" not in engine.report()[0]
    for _ in range(3):
        engine.step()
    (report,) = engine.report()
    assert {"loss/total", "value/q", "grad_norm", "success", "replay/mb"} <= report.keys()
    assert report["loss/credit"] > 0
    assert 0 <= report["bandit/arm"] <= 2
    assert "credit/gate_mean" in report
    now = arrays(engine.agent(0).credit)
    assert all(np.any(now[path] != array) for path, array in before.items())
    assert report["replay/steps"] == 4 * UPDATE
    assert engine.agent(0).network.epsilon is None


@pytest.mark.parametrize(
    ("agent", "credit"), [("r2d2", "none"), ("r2d2", "episodic"), ("impala", "episodic")]
)
def test_a_resumed_run_is_the_same_as_one_in_one_go(tmp_path, agent, credit):
    settings = {} if agent == "r2d2" else {"agent.replay": MIXED}
    config = small_config(
        credit, settings, agent=agent, steps=16 * UPDATE, schedule_steps=16 * UPDATE
    )
    train(config, out=tmp_path / "one")
    train(config.changed(steps=8 * UPDATE), out=tmp_path / "two")
    train(config, out=tmp_path / "two", resume=True)
    one, two = (read_metrics(tmp_path / name / "metrics.csv") for name in ("one", "two"))
    for name in one.keys() - {"wall_s", "steps_per_s"}:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)
    assert np.isfinite(one["loss/total"][-1])


def test_a_damaged_replay_is_named_and_gathered_anew(tmp_path, caplog):
    config = make_config(steps=8 * UPDATE)
    run = train(config, out=tmp_path / "run")
    (path,) = run.path.glob(f"checkpoints/{8 * UPDATE}/replay.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[:500] + b"?" + whole[501:])
    train(config.changed(steps=16 * UPDATE), out=run.path, resume=True)
    assert f"{path} cannot be read (its bytes have changed)" in caplog.text
    assert "nothing else is lost" in caplog.text


def test_without_its_replay_nothing_waits_for_credit():
    """The numbers of unrolls that are not there any more would be taken for those of new ones."""
    engine = FusedEngine(make_config({"credit": Uniform(replay=REPLAY), "agent.lstm_size": 0}), [0])
    engine.step()
    snapshot = engine.snapshot(0)
    assert snapshot["credit"]["held"].items
    engine.restore([snapshot])
    assert engine.snapshot(0)["credit"]["held"].items
    engine.restore([snapshot | {"replay": None}])
    assert not engine.snapshot(0)["credit"]["held"].items


@pytest.mark.parametrize(("actors", "agent"), [(0, "r2d2"), (1, "r2d2"), (0, "impala")])
def test_the_local_engine_learns_from_a_replay(actors, agent):
    settings = {"engine": LocalSettings(num_envs=4, unroll_length=5, actors=actors)}
    settings |= {} if agent == "r2d2" else {"agent.replay": MIXED}
    local = make_engine(small_config("episodic", settings, agent=agent), [0])
    try:
        for _ in range(6):
            local.step()
        (report,) = local.report()
    finally:
        local.close()
    assert report["replay/steps"] == 6 * UPDATE
    assert np.isfinite(report["loss/total"])


def test_without_threads_the_local_engine_does_what_the_fused_one_does():
    config = make_config({"engine.stagger": False})
    fused = FusedEngine(config, [3])
    local = make_engine(
        config.changed(engine=LocalSettings(num_envs=4, unroll_length=5, actors=0)), [3]
    )
    for _ in range(6):
        fused.step()
        local.step()
    want = arrays(fused.agent(0))
    for path, array in arrays(local.agent(0)).items():
        np.testing.assert_allclose(array, want[path], rtol=1e-3, atol=1e-5, err_msg=path)
    local.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"credit": Taken()}, "a replay keeps rewards only: .* or the agent 'impala'"),
        ({"agent.sequence_length": 4}, "sequence_length is 4 and engine.unroll_length is 5"),
        ({"engine.updates_per_call": 2}, "engine.updates_per_call is 2 .* set it to 1"),
        ({"engine.accumulate": 2}, "engine.accumulate is 2 .* set it to 1"),
        ({"agent.epsilon": 0.0}, r"epsilon is 0.0; .* \(0, 1\]"),
        ({"agent.replay.relabel": 2.0}, r"relabel is 2.0; it must lie in \[0, 1\]"),
    ],
)
def test_what_does_not_go_with_a_replay_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        make_config(settings)


def test_several_seeds_are_trained_one_by_one():
    with pytest.raises(ValueError, match=r"2 seeds .* train the seeds one by one"):
        FusedEngine(make_config(), [0, 1])
