"""The measures, on episodes whose answer is known."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.envs.catch import Catch
from synthetic_returns.envs.chain import Chain
from synthetic_returns.envs.credit_measure import CreditMeasure
from synthetic_returns.envs.key_to_door import KeyToDoor
from synthetic_returns.envs.skiing import Skiing
from synthetic_returns.envs.spec import TaskSpec
from synthetic_returns.presets import preset
from synthetic_returns.report.credit_quality import (
    CreditQuality,
    _measured,
    _Numbers,
    credit_quality,
)
from synthetic_returns.types import StepType, TimeStep
from synthetic_returns.viewer.playing import Played, play
from tests.small import untrained


def played(c, events, last_at) -> Played:
    c = np.asarray(c, np.float32)
    kinds = np.full(c.shape, StepType.MID, np.int8)
    kinds[0], kinds[last_at] = StepType.FIRST, StepType.LAST
    zeros = jnp.zeros(c.shape)
    timestep = TimeStep(
        jnp.asarray(kinds), zeros, zeros + 1, zeros,
        {name: jnp.asarray(x, jnp.float32) for name, x in events.items()},
    )  # fmt: skip
    return Played(timestep, Explanation({"c": Term(jnp.asarray(c), "c")}, "c"), None)


def measure_of(task: TaskSpec) -> CreditMeasure:
    assert task.credit_measure is not None
    return task.credit_measure


def measured(task: TaskSpec, played: Played) -> CreditQuality:
    return _measured(measure_of(task), played)


def test_the_peak_is_looked_for_in_phase_one_and_its_last_move_counts():
    task = KeyToDoor(key_steps=3, distractor_steps=2, door_steps=2)
    # Four episodes: right; right on the last move of phase one; one step late; no key at all.
    key = np.zeros((8, 4))
    key[2, 0] = key[3, 1] = key[2, 2] = 1
    c = np.zeros((8, 4))
    c[2, 0] = c[3, 1] = c[3, 2] = c[1, 3] = 1.0
    c[5] = 9.0  # phase two does not count
    quality = measured(task, played(c, {"key": key}, -1))
    assert quality.value == 0.5
    assert not quality.holds
    assert "4 episodes, 3 with the key; of those 66.7%" in quality.detail


def test_landings_are_compared_where_they_arrive_and_the_terminal_one_is_left_out():
    c = np.array([[9, 0.3, -9, -0.2, 0.4, 0.0]]).T  # only landings count, at 1, 3, 4 and the end
    events = {
        "catch": np.array([[0, 1, 0, 0, 1, 0]]).T,
        "miss": np.array([[0, 0, 0, 1, 0, 1]]).T,
    }
    quality = measured(Catch(delayed=True), played(c, events, -1))
    assert quality.value == 1.0
    assert quality.holds
    assert "2 caught, 1 missed in 1 episodes" in quality.detail


def test_skiings_credit_is_looked_for_at_the_gates():
    """Two races; the second is over early, and what lies behind its end is another one."""
    c, gate, last = np.zeros((16, 2)), np.zeros((16, 2)), np.zeros((16, 2), bool)
    c[0] = -9000.0  # what all races have in common
    gate[5, 0] = gate[11, 0] = gate[6, 1] = 1
    c[4, 0], c[7, 0], c[8, 0] = 300.0, 100.0, 60.0  # one step early, two late, three late
    c[10, 0], c[11, 0] = 500.0, -100.0  # some is taken back at once
    c[6, 1], c[2, 1] = 600.0, 40.0
    c[9, 1], c[12, 1], gate[12, 1] = 7000.0, 8000.0, 1  # the terminal state, and behind it
    last[14, 0] = last[9, 1] = True
    quality = _Numbers(c, {"gate": gate}, last).answer(measure_of(Skiing()))
    assert quality.value == pytest.approx(1500 / 1600)
    assert quality.holds
    said = "2 episodes, 3 gates passed; one earns 467 where 500 is true, 8 of 10 from 400 to 560"
    assert quality.detail == said
    later = np.roll(gate, 3, axis=0)
    late = _Numbers(c, {"gate": later}, last).answer(measure_of(Skiing()))
    assert late.value == pytest.approx(660 / 1600)
    assert not late.holds


def test_without_gates_or_without_credit_skiings_does_not_hold():
    nothing, last = np.zeros((6, 2)), np.zeros((6, 2), bool)
    last[-1] = True
    ones = np.ones((6, 2))
    no_gate = _Numbers(ones, {"gate": nothing}, last).answer(measure_of(Skiing()))
    assert (no_gate.value, no_gate.detail) == (0, "2 episodes, 0 gates passed")
    no_credit = _Numbers(-ones, {"gate": ones}, last).answer(measure_of(Skiing()))
    assert np.isnan(no_credit.value)
    assert "one earns -4 where 500 is true" in no_credit.detail


def test_episodes_that_were_played_in_parts_are_measured_together():
    whole = np.arange(12.0).reshape(6, 2)
    parts = [_Numbers(x, {"gate": x}, x > 5) for x in (whole, whole[:4, :1])]
    joined = _Numbers.side_by_side(parts)
    np.testing.assert_array_equal(joined.credit[:, :2], whole)
    np.testing.assert_array_equal(joined.credit[:, 2], [0, 2, 4, 6, 0, 0])
    np.testing.assert_array_equal(joined.events["gate"], joined.credit)
    np.testing.assert_array_equal(joined.last, joined.credit > 5)


def test_races_of_an_untrained_agent_are_measured(monkeypatch):
    pytest.importorskip("ale_py")
    monkeypatch.setattr("synthetic_returns.report.credit_quality.AT_ONCE", 2)
    config = preset("skiing", frame_skip=16, max_frames=400)
    quality = credit_quality(config.task, *untrained(config), episodes=3)
    assert quality is not None
    assert "3 episodes, " in quality.detail


def test_a_value_that_is_not_known_does_not_hold():
    quality = CreditQuality("q", float("nan"), 0.9, "AUC", "d")
    assert not quality.holds
    assert "not known" in str(quality)


def test_an_untrained_agent_plays_and_is_measured():
    config = preset("key-to-door", distractor_steps=1)
    agent, credit = untrained(config)
    quality = credit_quality(config.task, agent, credit, episodes=8)
    assert quality is not None
    assert 0 <= quality.value <= 1
    assert "8 episodes" in quality.detail
    assert credit_quality(config.task, agent, None) is None


def test_misses_of_an_agent_that_catches_all_are_played_at_random():
    config = preset("catch-delayed", runs=3)
    agent, _ = untrained(config)
    to_the_left = jnp.array([9.0, 0.0, 0.0])
    agent = eqx.tree_at(lambda a: a.network.policy_logits.bias, agent, to_the_left)
    half = play(config.task, agent, None, 50, epsilon=1.0)
    moves = np.diff(np.argmax(np.asarray(half.timestep.observation)[:6, :, -1, :, 0], -1), axis=0)
    assert {*np.unique(moves)} == {-1, 0, 1}
    both = half.beside(play(config.task, agent, None, 50))
    assert both.lengths.tolist() == [21] * 100
    np.testing.assert_array_equal(both.timestep.reward[:, :50], half.timestep.reward)


@pytest.mark.parametrize(
    "task", [Catch(), KeyToDoor(red_key_reward=-2.0), KeyToDoor(keys=2), Chain()]
)
def test_tasks_without_a_measure_have_none(task):
    assert task.credit_measure is None
