"""Loggers: named well, told everything, and imported only when asked for."""

import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from synthetic_returns.cli import main
from synthetic_returns.training.loggers.base import LOGGERS, MetricsLogger, check_loggers
from synthetic_returns.training.loggers.tags import tag_of
from synthetic_returns.training.loggers.tensorboard import TensorBoardLogger
from synthetic_returns.training.metrics import read_metrics
from synthetic_returns.training.traces import read_traces
from synthetic_returns.training.trainer import train
from tests.small import SMALL_FLAGS, UPDATE, small_config
from tests.training.test_metrics import read_events, scalars_shown

DOCUMENT = (Path(__file__).parent.parent.parent / "docs" / "metrics.md").read_text()


@pytest.fixture(scope="module", params=["paper", "episodic"])
def run(request, tmp_path_factory) -> Path:
    config = small_config(request.param, {"reporting.traces": 2}, steps=6 * UPDATE)
    return train(config, out=tmp_path_factory.mktemp("logged") / "run").path


def test_everything_that_is_measured_is_explained(run):
    documented = set(re.findall(r"^\| `([^`]+)`", DOCUMENT, flags=re.MULTILINE))
    events = {"trigger"}
    columns = set(read_metrics(run / "metrics.csv")) - events
    assert columns <= documented
    shown = set(scalars_shown(run / "tensorboard"))
    tags = {tag for tag in shown if not tag.startswith("eval/")} - {"episode/trigger"}
    explained = documented | set(re.findall(r"(?<=\| )`([^`]+)`(?= \|)", DOCUMENT))
    assert tags <= explained
    assert all("/" in tag for tag in shown)


def test_the_evaluation_the_drift_and_an_episode_are_shown(run):
    shown = scalars_shown(run / "tensorboard")
    assert shown["eval/return_mean"][-1][0] == 6 * UPDATE
    credit = read_traces(run)[-1].explanation.paid
    drifts = [step for step, _ in shown.get("credit/drift", [])]
    # Zero has no drift, and the episodic learner trusts nothing yet.
    assert drifts == ([6 * UPDATE] if np.any(credit) else [])
    pictures = {
        (value.tag, event.step)
        for event in read_events(run / "tensorboard")
        for value in event.summary.value
        if value.HasField("image")
    }
    steps = (3 * UPDATE, 6 * UPDATE)
    assert pictures == {
        (f"example_episode/{x}", s) for x in ("agent", "exploring", "scripted") for s in steps
    }


@pytest.mark.parametrize(
    ("column", "tag"),
    [
        ("episode_return", "episode/return"),
        ("key", "episode/key"),
        ("steps_per_s", "time/steps_per_s"),
        ("grad_norm", "loss/grad_norm"),
        ("credit/trust", "credit/trust"),
    ],
)
def test_names_are_in_groups(column, tag):
    assert tag_of(column) == tag


def test_nothing_optional_is_imported_unasked():
    program = (
        "import sys, synthetic_returns.training.trainer, synthetic_returns.commands.train\n"
        f"assert not set({LOGGERS!r}) & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_package_that_is_not_installed_is_named_before_anything_starts(
    monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    out = tmp_path / "run"
    with pytest.raises(SystemExit):
        main(["train", "chain", *SMALL_FLAGS, "--steps", "40", "--log", "wandb", "--out", str(out)])
    assert "pip install 'synthetic-returns[wandb]'" in capsys.readouterr().err
    assert not out.exists()
    with pytest.raises(ValueError, match="did you mean 'wandb'"):
        check_loggers(["wandbb"])


class FakeWandb(types.ModuleType):
    """Keeps what it is told."""

    def __init__(self):
        super().__init__("wandb")
        self.started: list[dict] = []
        self.told: list[dict] = []
        self.finished = 0

    def init(self, **settings):
        self.started.append(settings)
        return self

    def Image(self, pixels):
        return ("image", pixels.shape)

    def define_metric(self, name, **settings): ...

    def log(self, values):
        self.told.append(values)

    def finish(self):
        self.finished += 1


class FakeMlflow(types.ModuleType):
    """Keeps what it is told, by run."""

    def __init__(self):
        super().__init__("mlflow")
        self.metrics: dict[str, list] = {}
        self.parameters: dict[str, object] = {}
        self.images: list[str] = []
        self.ended: list[str] = []
        self.resumed: list[str] = []

    def MlflowClient(self):
        return self

    def get_experiment_by_name(self, name):
        return None

    def create_experiment(self, name):
        return "7"

    def create_run(self, experiment, run_name):
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id=f"{experiment}-{run_name}"))

    def update_run(self, run_id, status):
        self.resumed.append(run_id)

    def log_param(self, run_id, name, value):
        self.parameters[name] = value

    def log_metric(self, run_id, name, value, step):
        self.metrics.setdefault(name, []).append((step, value))

    def log_image(self, run_id, pixels, artifact_file):
        self.images.append(artifact_file)

    def set_terminated(self, run_id):
        self.ended.append(run_id)


@pytest.fixture
def fakes(monkeypatch):
    modules = {"wandb": FakeWandb(), "mlflow": FakeMlflow()}
    for name, module in modules.items():
        module.__spec__ = types.SimpleNamespace(name=name)  # pyright: ignore
        monkeypatch.setitem(sys.modules, name, module)
    return modules["wandb"], modules["mlflow"]


def test_both_are_told_what_tensorboard_is_told(fakes, tmp_path):
    wandb, mlflow = fakes
    path = tmp_path / "run"
    config = small_config("episodic", {"reporting.traces": 1}, steps=4 * UPDATE)
    train(config, out=path, log=["wandb", "mlflow"])
    longer = config.changed(steps=6 * UPDATE, schedule_steps=6 * UPDATE)
    train(longer, out=path, resume=True, log=["wandb", "mlflow"])
    shown = scalars_shown(path / "tensorboard")
    steps = [step for step, _ in mlflow.metrics["episode/return"]]
    assert steps == [step for step, _ in shown["episode/return"]] == [40, 80, 120]
    rows = [values for values in wandb.told if "episode/return" in values]
    assert [row["env_steps"] for row in rows] == steps
    assert set(mlflow.metrics) == set(shown)
    # A resumed run goes on in the same place.
    assert len({settings["id"] for settings in wandb.started}) == 1
    assert mlflow.resumed == mlflow.ended[:1] == ["7-run"]
    assert wandb.finished == len(mlflow.ended) == 2
    assert mlflow.parameters["task_name"] == wandb.started[0]["config"]["task_name"] == "chain"
    assert mlflow.images[0] == f"example_episode/agent/{4 * UPDATE:012d}.png"
    assert any(("image", (200, 640, 3)) in values.values() for values in wandb.told)


def test_tensorboard_is_a_logger_like_the_others(tmp_path):
    logger = TensorBoardLogger(tmp_path, -1)
    assert isinstance(logger, MetricsLogger)
    logger.image(1, "picture", np.zeros((3, 3), np.uint8))
    logger.close()


def test_tensorboard_does_not_wait_for_torch(tmp_path):
    """A run would start seconds later where torch is installed."""
    pytest.importorskip("torch")
    program = (
        "import sys; from pathlib import Path\n"
        "from synthetic_returns.training.loggers.tensorboard import TensorBoardLogger\n"
        f"TensorBoardLogger(Path({str(tmp_path)!r}), -1).close()\n"
        "assert 'torch' not in sys.modules\n"
        "import torch\n"
        "torch.zeros(1)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
