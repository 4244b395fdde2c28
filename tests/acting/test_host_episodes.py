"""Whole episodes on the host: all of their states, kept once."""

import jax
import numpy as np
import pytest

from synthetic_returns.acting import host_actor
from synthetic_returns.acting.host_actor import UNROLL, HostActor, play_episodes
from synthetic_returns.credit.none import NoCredit
from synthetic_returns.presets import preset
from synthetic_returns.training.trace_recorder import TraceRecorder
from synthetic_returns.training.traces import Trace
from synthetic_returns.types import StepType
from tests.small import untrained


@pytest.mark.parametrize("blocks", [1, 2])
def test_episodes_are_their_unrolls_one_after_another(blocks, monkeypatch):
    monkeypatch.setattr(host_actor, "BLOCK", blocks * UNROLL)
    config = preset("catch", runs=14).changed(credit=NoCredit())  # 98 steps: several unrolls
    network = untrained(config)[0].network
    played = play_episodes(config.task, network, 3, jax.random.key(4))
    player = HostActor(config.task, network, 3, jax.random.key(4))
    seen, number = played.timestep, 0
    while not np.any(np.asarray(seen.step_type)[: number * UNROLL] == StepType.LAST):
        want = player.unroll(network, UNROLL)
        steps = slice(number * UNROLL, (number + 1) * UNROLL + 1)
        np.testing.assert_array_equal(seen.observation[steps], want.timestep.observation)
        np.testing.assert_array_equal(seen.reward[steps], want.timestep.reward)
        np.testing.assert_array_equal(played.action[steps][:UNROLL], want.action)
        number += 1
    assert number >= 3
    assert isinstance(seen.observation, np.ndarray)  # on the host
    assert len(seen.observation) == len(seen.reward) == len(played.action) + 1


def test_the_trace_of_a_game_is_its_best_episode(tmp_path):
    pytest.importorskip("ale_py")
    config = preset("ale:Breakout", frame_skip=16, max_frames=1_600, height=48, width=48)
    agent, explainer = untrained(config)
    (tmp_path / "traces").mkdir()
    TraceRecorder(config.task).record(tmp_path, 5, 0, agent, explainer)
    trace = Trace.load(tmp_path / "traces" / "5.npz")
    played = play_episodes(config.task, agent.network, 8, jax.random.key(20_000)).timestep
    ends = np.argmax(np.asarray(played.last), axis=0)
    returns = [float(np.sum(played.reward[: end + 1, row])) for row, end in enumerate(ends)]
    assert len(set(returns)) > 1
    best = int(np.argmax(returns))
    assert float(np.sum(trace.reward)) == returns[best]
    np.testing.assert_array_equal(trace.observation, played.observation[: ends[best] + 1, best])
