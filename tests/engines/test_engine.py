"""The fused engine: repeatable, the same for one seed or many, compiled once."""

import inspect
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.agents.impala.learner import Learner
from synthetic_returns.credit import learner
from synthetic_returns.credit.compiled import compiled
from synthetic_returns.credit.episodic.method import Episodic
from synthetic_returns.credit.method import Assignment
from synthetic_returns.engines import programs
from synthetic_returns.engines.fused import FusedEngine
from tests.small import small_config
from tests.trees import arrays

CREDIT = pytest.mark.parametrize("credit", ["paper", "episodic"])


def after(config, seeds, calls=(1, 1, 1, 1)):
    engine = FusedEngine(config, seeds)
    for updates in calls:
        assert engine.step(updates) == updates
    reports = engine.report()
    return [arrays(engine.snapshot(index)) for index in range(len(seeds))], reports


@CREDIT
def test_the_same_seed_gives_the_same_numbers(credit):
    config = small_config(credit)
    (one,), (two,), (other,) = (after(config, [seed])[0] for seed in (3, 3, 4))
    assert len(one) > 20
    for path, array in one.items():
        np.testing.assert_array_equal(two[path], array, err_msg=path)
    learned = [path for path in one if "weight" in path and "learner" in path]
    assert learned
    for path in learned:
        assert np.any(one[path] != other[path]), path


@pytest.mark.parametrize("seeds", [[3], [3, 4]])
@pytest.mark.parametrize("calls", [(4,), (1, 3)])
def test_several_updates_in_one_call_equal_as_many_calls(seeds, calls):
    config = small_config("paper")
    (one_by_one, *_), (report, *_) = after(config.changed({"engine.updates_per_call": 1}), seeds)
    (at_once, *_), (same, *_) = after(config, seeds, calls)
    for path, array in one_by_one.items():
        np.testing.assert_allclose(at_once[path], array, rtol=1e-4, atol=1e-6, err_msg=path)
    assert same == pytest.approx(report, rel=1e-3, abs=1e-5)


def test_the_episodic_learner_refuses_several_updates_in_one_call():
    with pytest.raises(
        ValueError, match="updates_per_call is 2 and the credit method is 'episodic'"
    ):
        small_config("episodic", {"engine.updates_per_call": 2})


@CREDIT
def test_seeds_trained_together_equal_seeds_trained_alone(credit):
    config = small_config(credit)
    together, reports = after(config, [3, 4])
    for index, seed in enumerate((3, 4)):
        (alone,), (report,) = after(config, [seed])
        for path, array in alone.items():
            np.testing.assert_allclose(
                together[index][path], array, rtol=1e-3, atol=1e-5, err_msg=path
            )
        assert reports[index].keys() == report.keys()
        assert reports[index]["episode_steps"] == report["episode_steps"] == 5


@CREDIT
def test_nothing_is_compiled_after_the_first_steps(credit, caplog):
    engine = FusedEngine(small_config(credit), [0])

    def run():
        for _ in range(4):
            engine.step()
        engine.report()

    run()
    run()  # the number of episodes that end in an unroll takes few values, all seen by now
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        run()
        compiled = [record for record in caplog.records if "Compiling" in record.getMessage()]
        assert not compiled
        jax.jit(lambda x: x + 17)(1.0)  # does the log show compilations at all?
        assert any("Compiling" in record.getMessage() for record in caplog.records)


def test_another_seed_of_the_same_settings_compiles_nothing(caplog):
    def run(seed):
        engine = FusedEngine(small_config(seed=seed), [seed])
        for _ in range(4):
            engine.step()
        engine.report()

    run(0)
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        run(1)
    assert not [record for record in caplog.records if "Compiling" in record.getMessage()]


def test_a_report_covers_the_episodes_since_the_last_one():
    engine = FusedEngine(small_config(), [0])
    engine.step()
    first = engine.report()[0]
    assert first["episode_steps"] == 5  # 3 free moves, the jump and the way out
    assert {"success", "trigger", "loss/total", "grad_norm", "credit/gate_mean"} <= first.keys()
    assert "episode_return" not in engine.report()[0]


def test_seeds_trained_together_are_not_spread_over_devices():
    FusedEngine(small_config("paper", {"engine.devices": 0}), [0, 1])  # as many as suit: one
    with pytest.raises(ValueError, match=r"devices is 2 with 2 seeds.*set devices to 1"):
        FusedEngine(small_config("paper", {"engine.devices": 2}), [0, 1])


@pytest.mark.parametrize(
    ("most", "calls"), [(0, (4,)), (1, (1, 1, 1, 1)), (3, (3, 1))], ids=["any", "one", "three"]
)
def test_a_call_makes_as_many_updates_as_it_may(most, calls):
    engine = FusedEngine(small_config("none", {"engine.updates_per_call": most}), [0])
    left, made = 4, []
    while left:
        made.append(engine.step(left))
        left -= made[-1]
    assert tuple(made) == calls
    assert engine.steps_per_update == 20
    # 20 steps of each of 4 environments; an episode of 5 steps and the start of the next are 6.
    # The last environment was 3 steps ahead from the start, and so ends one episode more.
    assert engine.snapshot(0)["actor"].statistics.episodes.tolist() == [3, 3, 3, 4]


@pytest.mark.parametrize(
    ("credit", "changes"),
    [
        ("episodic", {}),  # is learned between updates
        ("none", {"agent.replay.share": 0.5}),
        ("none", {"agent.torso.channels": (2,), "agent.torso.kernel": 3}),  # slow in a loop on CPU
    ],
)
def test_updates_are_called_one_by_one_where_they_have_to_be(credit, changes):
    engine = FusedEngine(small_config(credit, changes), [0])
    assert [engine.step(5) for _ in range(2)] == [1, 1]


def test_arriving_at_the_end_of_an_episode_earns_nothing(monkeypatch):
    """The episodic model is never trained on a terminal state: whatever it says there is void."""
    seen = []

    def watch(self, state, trajectory, assignment):
        seen.append((trajectory.timestep.last, assignment.reward))
        return state, {}  # what would be learned is of no interest

    def assign(self, state, carry, segment):
        return Assignment(reward=jnp.ones(segment.reward.shape)), carry

    monkeypatch.setattr(Learner, "update", watch)
    monkeypatch.setattr(Episodic, "assign", assign)
    monkeypatch.setattr(learner, "compiled", compiled.__wrapped__)  # not yet compiled
    monkeypatch.setattr(programs, "_fused", inspect.unwrap(programs._fused))
    monkeypatch.setattr(
        programs, "compile_fused", lambda unroll, update: programs.Fused(unroll, update, unroll)
    )
    FusedEngine(small_config("episodic"), [0]).step()
    ((last, c_t),) = seen
    assert 0 < last[1:].sum() < last[1:].size
    # Nor does the step from there to the next episode.
    np.testing.assert_array_equal(c_t, np.where(last[1:] | last[:-1], 0, 1))
