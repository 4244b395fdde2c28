"""Games whose score is delayed, wherever they are played: paid at the end, and the true score."""

import numpy as np
import pytest

from synthetic_returns.acting.evaluation import evaluate
from synthetic_returns.engines.cluster.engine import ClusterEngine
from synthetic_returns.engines.local import LocalEngine
from synthetic_returns.engines.settings import ClusterSettings, LocalSettings
from synthetic_returns.presets import preset
from synthetic_returns.viewer.playing import play, record
from tests.engines.fake_ray import FakeRay
from tests.small import untrained

pytest.importorskip("ale_py")

UNROLL = 30  # at least as many steps as there are in an episode, which is cut off


def config(engine):
    """Pong of few frames, in which some points are lost."""
    small = {
        "credit.replay.warmup": 2,
        "agent.torso.channels": (4, 4),
        "agent.torso.sizes": (8,),
        "engine": engine,
    }
    return preset("pong", delayed=True, frame_skip=16, max_frames=400).changed(small)


ENGINES = [
    (LocalEngine, LocalSettings(num_envs=2, unroll_length=UNROLL, actors=0)),
    (LocalEngine, LocalSettings(num_envs=2, unroll_length=UNROLL, actors=1)),
    (ClusterEngine, ClusterSettings(num_envs=2, unroll_length=UNROLL, actors=1)),
]


@pytest.mark.parametrize(("kind", "settings"), ENGINES, ids=["turns", "local", "cluster"])
def test_engines_report_the_true_score(kind, settings, monkeypatch):
    FakeRay().install(monkeypatch)
    engine = kind(config(settings), [0])
    try:
        for _ in range(4):
            engine.step()
        (report,) = engine.report()
    finally:
        engine.close()
    assert report["point_lost"] > 0
    assert report["episode_return"] == pytest.approx(report["point"] - report["point_lost"])
    assert np.isfinite(report["loss/total"])


def test_evaluation_and_viewer_show_the_true_score():
    of_pong = config(LocalSettings(num_envs=2, unroll_length=UNROLL, actors=0))
    agent, explainer = untrained(of_pong)
    totals = evaluate(of_pong.task, agent.network, 3, seed=0).totals
    np.testing.assert_array_equal(totals["episode_return"], totals["point"] - totals["point_lost"])
    assert totals["point_lost"].any()
    recordings = record(of_pong.task, play(of_pong.task, agent, explainer, 2))
    for recording in recordings:
        assert not recording.reward[:-1].any()
        assert recording.total == sum(recording.events["point"] - recording.events["point_lost"])
    assert any(recording.total for recording in recordings)
