"""Metrics: exact, never duplicated by a resume, readable at any moment."""

import struct

import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.training.metrics import MetricsWriter, read_metrics
from synthetic_returns.utils.files import RunError


@pytest.fixture
def csv_path(tmp_path):
    return tmp_path / "metrics.csv"


def open_writer(csv_path, resume_step=None):
    return MetricsWriter(csv_path, csv_path.parent / "tensorboard", resume_step=resume_step)


def read_events(directory):
    """Every event in the order in which TensorBoard reads them: file by file, by name."""
    from tensorboardX.event_file_writer import event_pb2

    for path in sorted(directory.glob("events.*")):
        data = path.read_bytes()
        while data:  # a record is its length, a checksum, the event, a checksum
            (length,) = struct.unpack("<Q", data[:8])
            yield event_pb2.Event.FromString(data[12 : 12 + length])  # pyright: ignore
            data = data[16 + length :]


def scalars_shown(directory):
    """``{tag: [(step, value)]}`` after TensorBoard's rule for restarts."""
    session_start = 1
    shown = {}
    for event in read_events(directory):
        if event.HasField("session_log") and event.session_log.status == session_start:
            for tag, points in shown.items():
                shown[tag] = [point for point in points if point[0] < event.step]
        for value in event.summary.value:
            if value.HasField("simple_value"):
                shown.setdefault(value.tag, []).append((event.step, value.simple_value))
    return shown


def test_rows_come_back_exactly(csv_path):
    with open_writer(csv_path) as writer:
        writer.write(10, {"return": 1 / 3, "frames": 2**53 + 1})
        writer.write(20, {"return": np.float32(0.1), "frames": jnp.int32(7)})
    assert csv_path.read_text() == (
        "env_steps,return,frames\n10,0.3333333333333333,9007199254740993\n20,0.1,7\n"
    )
    table = read_metrics(csv_path)
    assert table["env_steps"].dtype == np.int64
    assert table["return"].dtype == np.float64
    assert list(table["env_steps"]) == [10, 20]
    assert list(table["return"]) == [1 / 3, 0.1]


def test_each_row_is_on_disk_before_the_writer_closes(csv_path):
    with open_writer(csv_path) as writer:
        for step in (1, 2, 3):
            writer.write(step, {"loss": step / 2})
            assert list(read_metrics(csv_path)["loss"]) == [i / 2 for i in range(1, step + 1)]


def test_a_new_name_becomes_a_column_and_a_missing_one_stays_empty(csv_path):
    with open_writer(csv_path) as writer:
        writer.write(1, {"loss": 3.0})
        writer.write(2, {"eval/return": 5.0, "loss": 2.0})
        writer.write(3, {"eval/return": 6.0})
    assert csv_path.read_text() == "env_steps,loss,eval/return\n1,3.0,\n2,2.0,5.0\n3,,6.0\n"
    table = read_metrics(csv_path)
    np.testing.assert_array_equal(table["loss"], [3, 2, np.nan])
    np.testing.assert_array_equal(table["eval/return"], [np.nan, 5, 6])


def test_nothing_written_yet_reads_as_no_rows(csv_path):
    with open_writer(csv_path):
        assert {name: len(values) for name, values in read_metrics(csv_path).items()} == {
            "env_steps": 0
        }


def test_names_with_commas_and_quotes_survive(csv_path):
    with open_writer(csv_path) as writer:
        writer.write(1, {'a,"b"': 1.0})
        writer.write(2, {'a,"b"': 2.0, "c": 1.0})
    assert list(read_metrics(csv_path)['a,"b"']) == [1, 2]


@pytest.mark.parametrize(
    ("step", "values", "message"),
    [
        (4, {"loss": 1.0}, "step 4 come after those of step 5.*resume_step"),
        (6, {"env_steps": 6}, "env_steps.*first column"),
        (6, {"loss": np.zeros(3)}, r"'loss' is float64\[3\].*one real number"),
        (6, {"loss": "low"}, "'loss' is <U3.*one real number"),
        (6, {"loss": None}, "'loss' is object.*one real number"),
    ],
)
def test_refused_rows_leave_the_file_alone(csv_path, step, values, message):
    with open_writer(csv_path) as writer:
        writer.write(5, {"loss": 1.0})
        before = csv_path.read_text()
        with pytest.raises(ValueError, match=message):
            writer.write(step, values)
        assert csv_path.read_text() == before


def test_two_rows_may_share_a_step(csv_path):
    with open_writer(csv_path) as writer:
        writer.write(5, {"loss": 1.0})
        writer.write(5, {"eval": 2.0})
    assert list(read_metrics(csv_path)["env_steps"]) == [5, 5]


def test_resuming_equals_never_stopping(csv_path, tmp_path):
    straight = tmp_path / "straight" / "metrics.csv"
    straight.parent.mkdir()
    with open_writer(straight) as writer:
        for step in range(1, 9):
            writer.write(step, {"loss": step / 8})
    # The checkpoint is of step 4, but the run went on to 6 before it was killed.
    with open_writer(csv_path) as writer:
        for step in range(1, 7):
            writer.write(step, {"loss": step / 8})
    with open_writer(csv_path, resume_step=4) as writer:
        for step in range(5, 9):
            writer.write(step, {"loss": step / 8})
    assert csv_path.read_text() == straight.read_text()
    shown = scalars_shown(csv_path.parent / "tensorboard")
    assert shown == scalars_shown(straight.parent / "tensorboard")
    assert shown == {"episode/loss": [(step, step / 8) for step in range(1, 9)]}


def test_without_a_checkpoint_all_rows_are_written_again(csv_path):
    for _ in range(2):
        with open_writer(csv_path) as writer:
            writer.write(0, {"loss": 2.0})
            writer.write(1, {"loss": 1.0})
    assert list(read_metrics(csv_path)["env_steps"]) == [0, 1]
    assert scalars_shown(csv_path.parent / "tensorboard") == {"episode/loss": [(0, 2.0), (1, 1.0)]}


def test_a_row_cut_off_by_a_crash_is_ignored_and_then_mended(csv_path):
    with open_writer(csv_path) as writer:
        writer.write(1, {"loss": 1.0, "value": 10.0})
    whole = csv_path.read_text()
    csv_path.write_text(whole + "2,0.5,2")  # was going to be 20.0
    assert list(read_metrics(csv_path)["env_steps"]) == [1]
    with open_writer(csv_path, resume_step=2) as writer:
        assert csv_path.read_text() == whole
        writer.write(2, {"loss": 0.5, "value": 20.0})
    assert list(read_metrics(csv_path)["value"]) == [10, 20]


@pytest.mark.parametrize("line", ["2,1.0,7", "2", "two,1.0", "-2,1.0"])
def test_an_edited_file_is_refused_by_line(csv_path, line):
    csv_path.write_text(f"env_steps,loss\n1,2.0\n{line}\n3,1.0\n")
    with pytest.raises(RunError, match=r"line 3 of .*metrics\.csv.*delete this line"):
        read_metrics(csv_path)
    before = csv_path.read_text()
    with pytest.raises(RunError, match="line 3"):
        open_writer(csv_path, resume_step=3)
    assert csv_path.read_text() == before


def test_a_file_of_another_program_is_refused(csv_path):
    csv_path.write_text("epoch,loss\n1,2.0\n")
    with pytest.raises(RunError, match="'epoch' but the first one must be 'env_steps'"):
        read_metrics(csv_path)


def test_non_finite_values_are_kept_in_the_table_and_silent(csv_path, capfd, caplog):
    with open_writer(csv_path) as writer:
        writer.write(1, {"loss": float("nan"), "scale": float("inf"), "entropy": 0.5})
    table = read_metrics(csv_path)
    assert np.isnan(table["loss"][0])
    assert np.isposinf(table["scale"][0])
    assert scalars_shown(csv_path.parent / "tensorboard") == {"episode/entropy": [(1, 0.5)]}
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_images_reach_tensorboard(csv_path):
    with open_writer(csv_path) as writer:
        writer.image(3, "grey", np.zeros((4, 6), np.uint8))
        writer.image(3, "colour", np.zeros((4, 6, 3), np.uint8))
        with pytest.raises(ValueError, match=r"'bad' is float64\[4, 6\].*uint8"):
            writer.image(3, "bad", np.zeros((4, 6)))
    shown = {
        value.tag: (event.step, value.image.height, value.image.width)
        for event in read_events(csv_path.parent / "tensorboard")
        for value in event.summary.value
    }
    assert shown == {"grey": (3, 4, 6), "colour": (3, 4, 6)}


def test_closing_twice_is_harmless(csv_path):
    writer = open_writer(csv_path)
    writer.close()
    writer.close()
