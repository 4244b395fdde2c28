"""A run opens on any machine: its agent and credit are read, nothing else of it is built."""

import json
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

from synthetic_returns.credit.explainer import AuxiliaryExplainer, EpisodeExplainer
from synthetic_returns.engines.fused import FusedEngine
from synthetic_returns.envs.chain import Chain
from synthetic_returns.training.checkpoints import CheckpointError, Checkpoints
from synthetic_returns.training.loading import load_agent, load_run
from synthetic_returns.viewer.opened_run import OpenedRun
from tests.small import METHODS, small_config
from tests.trees import arrays

KINDS = {"none": type(None), "paper": AuxiliaryExplainer, "episodic": EpisodeExplainer}


def assert_equal(got, want):
    one, other = arrays(got), arrays(want)
    assert one.keys() == other.keys()
    for path, array in other.items():
        np.testing.assert_array_equal(one[path], array, err_msg=path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Of every method, an engine that has learned a little, and the directory it was saved in."""
    engines = {}
    for credit in KINDS:
        engine = FusedEngine(small_config(credit), [0])
        for _ in range(3):
            engine.step()
        path = tmp_path_factory.mktemp(credit)
        Checkpoints(path / "checkpoints").save(60, {"engine": engine.snapshot(0), "wall_s": 1.5})
        engines[credit] = (engine, path)
    return engines


@pytest.fixture
def nothing_runs(monkeypatch):
    """Whatever builds an engine, a device mesh or an environment fails."""

    def refuse(*args, **kwargs):
        pytest.fail("loading must not build or start this")

    # Those that import a name come before its home: patched the other way round, a module that
    # is first imported here would keep what refuses.
    for place in (
        "synthetic_returns.training.trainer.make_engine",
        "synthetic_returns.engines.engine.make_engine",
        "synthetic_returns.engines.fused.FusedEngine.__init__",
        "synthetic_returns.engines.unroll_learner.UnrollLearner.__init__",
        "synthetic_returns.engines.credit.make_driver",
        "synthetic_returns.utils.devices.device_mesh",
        "synthetic_returns.acting.compiled_actor.CompiledActor.__init__",
        "synthetic_returns.acting.host_actor.host_environments",
        "synthetic_returns.envs.host.host_environments",
        "synthetic_returns.envs.base.VectorEnvironment.__init__",
    ):
        monkeypatch.setattr(place, refuse)
    for name in ("start", "reset", "step"):
        monkeypatch.setattr(Chain, name, refuse)


@pytest.mark.parametrize("credit", KINDS)
def test_the_agent_and_its_credit_are_those_of_the_engine(saved, nothing_runs, credit):
    engine, path = saved[credit]
    config = small_config(credit)
    step, agent, loaded = load_run(path, config)
    assert step == 60
    assert_equal(agent, engine.agent(0))
    want = engine.explainer(0)
    assert type(loaded) is type(want) is KINDS[credit]
    assert_equal(loaded, want)
    assert jax.tree.structure(loaded) == jax.tree.structure(want)  # its method and view as well
    if loaded is not None:
        assert loaded.method == config.credit
        assert len(arrays(loaded)) > 5


def test_view_evaluate_and_report_open_a_run_without_its_engine(chain_run, nothing_runs):
    """The first and the last of them open it in the same way."""
    step, agent, credit = OpenedRun.open(chain_run).load()
    config, same_step, same_agent = load_agent(chain_run)
    assert step == same_step == config.steps
    assert isinstance(credit, EpisodeExplainer)
    assert_equal(same_agent, agent)


def test_a_run_of_many_devices_opens_on_one(chain_run: Path, tmp_path, monkeypatch):
    monkeypatch.setattr(jax, "device_count", lambda: 1)
    path = tmp_path / "run"
    shutil.copytree(chain_run, path)
    document = json.loads((path / "config.json").read_text())
    document["config"]["engine"]["devices"] = 4
    (path / "config.json").write_text(json.dumps(document))
    config, _, agent = load_agent(path)
    assert config.engine.devices == 4
    with pytest.raises(ValueError, match="devices is 4 and JAX has 1"):
        FusedEngine(config, [0])
    _, _, credit = OpenedRun.open(path).load()
    _, here, same_credit = OpenedRun.open(chain_run).load()
    assert_equal((agent, credit), (here, same_credit))
    assert all(len(x.devices()) == 1 for x in jax.tree.leaves((agent, credit)))


@pytest.mark.parametrize(
    ("credit", "settings", "leaf"),
    [
        (
            "paper",
            {"agent.policy_size": 9},
            r"\.policy_layer\.weight is float32\[8, 4\] in the checkpoint but float32\[9, 4\]",
        ),
        ("episodic", {"credit.head_sizes": (9,)}, r"\['credit'\]\['state'\]\.model\."),
        ("none", {"agent.lstm_size": 0}, r"\.policy_layer\.weight is float32\[8, 4\]"),
    ],
)
def test_a_checkpoint_of_another_configuration_is_named(saved, credit, settings, leaf):
    path = saved[credit][1]
    message = rf"checkpoint {path}/checkpoints/60 belongs to another configuration: leaf .*{leaf}"
    with pytest.raises(CheckpointError, match=message):
        load_run(path, small_config(credit, settings))


def test_a_checkpoint_of_another_method_is_named(saved):
    with pytest.raises(CheckpointError, match=r"\['credit'\].* is no such leaf in the checkpoint"):
        load_run(saved["none"][1], small_config("none", {"credit": METHODS["episodic"]}))


def test_a_run_without_a_checkpoint_has_no_agent(tmp_path):
    with pytest.raises(CheckpointError, match="there is no checkpoint in"):
        load_run(tmp_path, small_config("none"))
