"""A real cluster on this machine: processes and nodes die while it trains, and it goes on."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from synthetic_returns.engines.cluster.crew import SETTINGS
from synthetic_returns.engines.settings import ClusterSettings
from synthetic_returns.presets import preset
from synthetic_returns.training.checkpoints import Checkpoints
from synthetic_returns.training.runs import Run
from synthetic_returns.training.settings import ReportingSettings
from synthetic_returns.training.trainer import train
from tests.small import SMALL_FLAGS

pytestmark = [
    pytest.mark.slow,
    # Ray leaves sockets and subprocesses to the interpreter.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def three_nodes(monkeypatch):
    """A cluster of a head for the learner and two nodes with room for two actors each."""
    for name, value in (SETTINGS | {"RAY_AUTH_MODE": "disabled"}).items():
        monkeypatch.setenv(name, value)
    ray = pytest.importorskip(
        "ray", reason="needs the extra: pip install 'synthetic-returns[cluster]'"
    )
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=2) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False)
    cluster.wait_for_nodes()
    yield ray, cluster, nodes
    ray.shutdown()
    cluster.shutdown()


def chain(actors):
    """The Chain as the fast preset learns it, for which 100,000 steps are enough."""
    return preset("chain", "episodic").changed(
        steps=150_000,
        engine=ClusterSettings(num_envs=32, unroll_length=10, actors=actors),
        reporting=ReportingSettings(log_every=5_000, eval_episodes=100, traces=0),
    )


def test_actors_and_a_node_die_and_the_chain_is_solved(three_nodes, tmp_path):
    ray, cluster, nodes = three_nodes
    config = chain(actors=3)
    rows = []

    def trouble(step, row):
        rows.append(row)
        if len(rows) in (3, 6):
            prefix = f"actor-{len(rows) // 3}-"
            (name,) = (n for n in ray.util.list_named_actors() if n.startswith(prefix))
            ray.kill(ray.get_actor(name), no_restart=False)
        if len(rows) == 9:
            cluster.remove_node(nodes[1], allow_graceful=False)

    run = train(config, out=tmp_path / "run", progress=trouble)
    assert run.summary()["env_steps"] >= config.steps
    assert run.summary()["eval"]["success"] > 0.9
    metrics = run.read_metrics()
    assert metrics["actors/restarted"][-1] >= 3
    assert metrics["actors/poisoned"][-1] == 0
    lengths = metrics["episode_steps"]
    assert np.all(lengths == lengths[0])  # all episodes are equally long: none was pieced together
    assert metrics["actors/delivering"][-1] >= 1
    assert np.all(metrics["policy/lag_max"] <= ClusterSettings().max_lag)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_learner_that_is_killed_or_told_to_stop_goes_on(end, tmp_path):
    pytest.importorskip("ray", reason="needs the extra: pip install 'synthetic-returns[cluster]'")
    path = tmp_path / "run"
    program = [sys.executable, "-m", "synthetic_returns", "train"]
    flags = ["chain", *SMALL_FLAGS, "--engine", "cluster", "--engine.actors", "2"]
    endless = ["--steps", "10000000", "--reporting.checkpoint-every", "0", "--out", str(path)]
    process = subprocess.Popen([*program, *flags, *endless])
    store = Checkpoints(path / "checkpoints")
    deadline = time.monotonic() + 600
    while store.latest_step() is None:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(end)
    process.wait(timeout=120)
    # Told to stop, it saves and says how to go on, though Ray would rather end the process.
    assert (process.returncode < 0) == (end == signal.SIGKILL)
    saved = store.latest_step()
    assert saved is not None
    # With another number of actors: that is no other experiment.
    more = ["--resume", str(path), "--steps", str(saved + 400), "--engine.actors", "1", "--quiet"]
    done = subprocess.run([*program, *more], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert Run.open(path).summary()["env_steps"] == saved + 400


def test_with_synthetic_returns_the_chain_is_solved_on_a_cluster(tmp_path):
    pytest.importorskip("ray", reason="needs the extra: pip install 'synthetic-returns[cluster]'")
    run = train(chain(actors=2), out=tmp_path / "run")
    assert run.summary()["eval"]["success"] > 0.9
    assert run.read_metrics()["actors/restarted"][-1] == 0
