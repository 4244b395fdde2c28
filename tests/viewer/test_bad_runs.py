"""What is not a run, or not one yet, or not one of this version, gets a message."""

import json
import shutil

import pytest

from synthetic_returns.cli import main


def refused(capsys, *arguments) -> str:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


@pytest.fixture
def copy(chain_run, tmp_path):
    shutil.copytree(chain_run, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("command", ["view", "report"])
def test_what_is_not_a_run(command, capsys, tmp_path):
    assert "there is no run" in refused(capsys, command, tmp_path / "nowhere")
    assert "is not a run directory" in refused(capsys, command, tmp_path)


@pytest.mark.parametrize("command", ["view", "report"])
def test_a_half_written_configuration(command, capsys, copy):
    text = (copy / "config.json").read_text()
    (copy / "config.json").write_text(text[: len(text) // 2])
    assert "damaged or half-written" in refused(capsys, command, copy)


@pytest.mark.parametrize("command", ["view", "report"])
@pytest.mark.parametrize(
    "change",
    [
        lambda config: config.pop("task_name"),
        lambda config: config.pop("engine"),
        lambda config: config.update(warmth=3),
        lambda config: config["task"].update(colour="red"),
    ],
)
def test_settings_of_another_version(command, change, capsys, copy):
    document = json.loads((copy / "config.json").read_text())
    change(document["config"])
    document["version"] = "0.0.9"
    (copy / "config.json").write_text(json.dumps(document))
    said = refused(capsys, command, copy)
    assert "was written by synthetic-returns 0.0.9" in said
    assert "use that version" in said


@pytest.mark.parametrize("command", ["view", "report", "evaluate"])
def test_settings_of_the_first_version(command, capsys, copy):
    document = json.loads((copy / "config.json").read_text())
    del document["config"]["version"]
    (copy / "config.json").write_text(json.dumps(document))
    said = refused(capsys, command, copy)
    assert "settings of synthetic-returns 0.1" in said
    assert "train again with this version, or open the run with synthetic-returns 0.1" in said


def test_another_format(capsys, copy):
    document = json.loads((copy / "config.json").read_text()) | {"format": 0}
    (copy / "config.json").write_text(json.dumps(document))
    assert "has format 0" in refused(capsys, "view", copy)


def test_no_checkpoint_yet(capsys, copy):
    shutil.rmtree(copy / "checkpoints")
    said = refused(capsys, "view", copy)
    assert "has no checkpoint yet" in said
    assert f"train --resume {copy}" in said


def test_no_metrics_yet(capsys, copy):
    (copy / "metrics.csv").write_text("env_steps,success\n")
    assert "no row of metrics yet" in refused(capsys, "report", copy)
    (copy / "metrics.csv").unlink()
    assert "has no metrics.csv yet" in refused(capsys, "report", copy)


def test_a_damaged_result(capsys, copy):
    (copy / "summary.json").write_text('{"eval": ')
    assert "damaged or half-written" in refused(capsys, "report", copy)


def test_an_unfinished_run_is_reported_as_such(capsys, copy):
    (copy / "summary.json").unlink()
    main(["report", str(copy)])
    assert "not finished" in (copy / "report.html").read_text()


def test_no_run_at_all(capsys):
    assert "no run to report on" in refused(capsys, "report")
