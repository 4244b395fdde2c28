"""Small tasks as agents see them, and the credit that agents get beside the exact one."""

import dataclasses

import jax
import numpy as np
import pytest

from synthetic_returns.engines.engine import make_engine
from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.chain import Chain
from synthetic_returns.envs.linear_key_to_door import LinearKeyToDoor
from synthetic_returns.envs.watch_repair import WatchRepair
from synthetic_returns.experiments.exact.probe import SHARES, credited, played, probed
from synthetic_returns.experiments.exact.run import ExactStudy, train_exact
from synthetic_returns.experiments.exact.tasks import Certain, Watches

CORRIDOR = Certain("corridor", "Corridor", LinearKeyToDoor(), "chain", 640)
CHAIN = Certain("chain", "Chain", Chain(length=5, trigger=2, free_moves=3), "chain", 640)
WATCHES = Watches("watches", "Watches", WatchRepair(length=6), "watch-repair", 640)


class Untold(LinearKeyToDoor):
    """Does not know what its steps contribute."""

    owed = Environment.owed


def of_some_agent(task, method="none"):
    """A policy that is not uniform, what it plays, and the exact credit of it."""
    config = task.config(method, "learning", 0)
    engine = make_engine(config, [0])
    network = jax.tree.map(lambda x: 3 * x, engine.agent(0).network)
    trajectory = played(config, network, jax.random.key(1))
    return config, engine.explainer(0), trajectory, task.truth(network)


@pytest.mark.parametrize("task", [CORRIDOR, CHAIN, WATCHES], ids=lambda task: task.name)
def test_the_truth_is_that_of_the_policy_that_played(task):
    _, _, trajectory, truth = of_some_agent(task)
    states = task.states(trajectory)
    acted = states if isinstance(task, Certain) else states[:1]  # later ones do nothing
    policy = np.asarray(jax.nn.softmax(trajectory.logits))[: len(acted)]
    np.testing.assert_allclose(truth.policy[acted], policy, atol=1e-5)
    assert np.ptp(truth.policy[acted][..., 0]) > 1e-3  # else anything would pass
    returns = np.asarray(trajectory.timestep.reward[1:]).sum(axis=0)
    error = returns.std() / np.sqrt(len(returns))
    assert truth.expected_return == pytest.approx(returns.mean(), abs=4 * error)
    if isinstance(task, Certain):
        np.testing.assert_array_equal(
            task.graph.observation[states], trajectory.timestep.observation[:-1]
        )


def test_repairs_pay_what_they_earn_in_the_mean():
    _, _, trajectory, truth = of_some_agent(dataclasses.replace(WATCHES, env=WatchRepair()))
    states = WATCHES.states(trajectory)[0]
    repaired = np.asarray(trajectory.action)[0] == 1
    returns = np.asarray(trajectory.timestep.reward[1:]).sum(axis=0)
    for start in truth.starts:
        chosen = returns[(states == start) & repaired]
        gain = truth.advantage[start, 1] - truth.advantage[start, 0]
        assert gain == pytest.approx(chosen.mean(), abs=4 * chosen.std() / np.sqrt(len(chosen)))
    assert not truth.advantage[len(truth.starts) * 2 :].any()


def test_credit_is_what_the_agent_is_paid():
    config, explainer, trajectory, _ = of_some_agent(CHAIN, "oracle")
    paid = credited(config, explainer, trajectory)
    reward = np.asarray(trajectory.timestep.reward[1:])
    np.testing.assert_allclose(paid.sum(axis=0), reward.sum(axis=0), atol=1e-6)
    won = reward.sum(axis=0) > 0
    assert won.any()
    at = np.asarray(trajectory.timestep.events["trigger"])[1:]
    np.testing.assert_allclose(paid[:, won], at[:, won])  # when the trigger is visited
    assert credited(*of_some_agent(CORRIDOR, "cocoa")[:3]).shape == (5, 500, 4)


def test_the_oracle_of_the_corridor_pays_for_the_key_and_takes_it_back_at_a_closed_door():
    config, explainer, trajectory, _ = of_some_agent(CORRIDOR, "oracle")
    paid = credited(config, explainer, trajectory)
    reward = np.asarray(trajectory.timestep.reward[1:])
    np.testing.assert_allclose(paid.sum(axis=0), reward.sum(axis=0), atol=1e-6)
    action = np.asarray(trajectory.action)
    key, opens = action[0] == 0, action[3] == 3
    np.testing.assert_allclose(paid[0], key, atol=1e-6)
    np.testing.assert_allclose(paid[3], np.where(key & ~opens, -1, 0), atol=1e-6)
    np.testing.assert_allclose(paid[1:3], reward[1:3], atol=1e-6)


def test_rows_of_a_run():
    rows = probed(CORRIDOR, "none", "random", 0)
    of = {name: [r for r in rows if r["method"] == name] for name in ("none", "return")}
    assert [len(found) for found in of.values()] == [len(SHARES)] * 2
    assert rows[-1]["env_steps"] >= CORRIDOR.steps
    assert all(r["variance"] == 0 for r in of["none"])  # nothing is random in a reward
    assert of["return"][-1]["bias"] < 0.3 * of["none"][-1]["bias"]
    assert of["return"][-1]["correlation_of_means"] > 0.9


def test_a_finished_run_is_not_repeated(tmp_path, monkeypatch):
    untold = dataclasses.replace(CORRIDOR, env=Untold())
    study = ExactStudy((untold,), ("none", "oracle"), 1)
    cell, refused = study.cells
    assert "does not know them" in refused.refusal()
    for path in cell.paths(tmp_path).values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("task,seed\ncorridor,0\n")
    done = list(train_exact(study.cells, tmp_path))
    assert [(one, bool(why)) for one, why in done] == [(refused, True), (cell, False)]
    assert study.rows(tmp_path) == [{"task": "corridor", "seed": 0.0}] * 2
    assert study.only(["corridor"], ["none"]).cells == [cell]
    with pytest.raises(ValueError, match="no method 'nine'; did you mean 'none'"):
        study.only([], ["nine"])
