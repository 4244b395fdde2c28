"""Small files that claim, or unpack to, more than a machine holds; and files that never end."""

import io
import json
import os
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

from synthetic_returns.logs.dataset import find_logs
from synthetic_returns.training.metrics import read_metrics
from synthetic_returns.training.runs import Run
from synthetic_returns.training.traces import Trace
from synthetic_returns.utils import archives, reading
from synthetic_returns.utils.archives import read_arrays
from synthetic_returns.utils.files import RunError
from tests.hostile.mutations import Explosive

MACHINE = 200_000_000  # bytes, for the tests
UNPACKED = 150_000_000  # of a bomb


@pytest.fixture(autouse=True)
def small_machine(monkeypatch):
    monkeypatch.setattr(archives, "machine_bytes", lambda: MACHINE)


def bomb(path, name="observation", declared=UNPACKED, packed=UNPACKED):
    """Zeros, packed a thousand to one; the header may claim another size."""
    header = io.BytesIO()
    about = {"descr": "|u1", "fortran_order": False, "shape": (declared,)}
    np.lib.format.write_array_header_1_0(header, about)
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(f"{name}.npy", "w") as member,
    ):
        member.write(header.getvalue())
        for _ in range(packed // 1_000_000):
            member.write(bytes(1_000_000))
    return path


def peak(read, path, message):
    """The memory that a refusal takes."""
    tracemalloc.start()
    try:
        with pytest.raises(RunError, match=message):
            read(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_packed_bomb_is_refused_before_it_is_unpacked(tmp_path):
    path = bomb(tmp_path / "3.npz")
    assert path.stat().st_size < 200_000
    message = r"3\.npz.*would take 0\.1 GB and this machine has 0\.2 GB"
    assert peak(Trace.load, path, message) < 3_000_000


def test_a_false_claim_is_refused_before_room_is_made(tmp_path):
    path = bomb(tmp_path / "3.npz", declared=2**50, packed=1_000_000)
    message = r"says that it is uint8.*1,125,899,906,842,624 bytes, and it has 1,000,000"
    assert peak(Trace.load, path, message) < 3_000_000


def test_a_bomb_of_episodes_is_refused(tmp_path):
    path = tmp_path / "episodes.npz"
    lengths = io.BytesIO()
    np.save(lengths, np.array([UNPACKED]))
    bomb(path, "rewards")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("lengths.npy", lengths.getvalue())

    def read(path):
        list(find_logs(path)[0].read())

    assert peak(read, path, r"150,000,000 rows of rewards in .*episodes\.npz") < 3_000_000


def test_other_packing_than_that_of_numpy_is_refused(tmp_path):
    """It can be a million to one."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", bytes(100))
    with pytest.raises(RunError, match="packed as NumPy does not"):
        read_arrays(tmp_path / "a.npz", "write it again")


def test_objects_are_not_unpickled(tmp_path):
    mark = tmp_path / "executed"
    np.savez(tmp_path / "a.npz", allow_pickle=True, x=np.array([Explosive(mark)], dtype=object))
    with pytest.raises(RunError, match=r"x in .*a\.npz is an array of object"):
        read_arrays(tmp_path / "a.npz", "write it again")
    assert not mark.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such files here")
@pytest.mark.parametrize("name", ["config.json", "metrics.csv", "summary.json"])
def test_what_never_ends_is_not_read(name, tmp_path):
    with Run.create(tmp_path / "run", {}, ["train"]) as run, run.metrics(None) as metrics:
        metrics.write(1, {})
    (run.path / name).unlink(missing_ok=True)
    (run.path / name).symlink_to("/dev/zero")

    def read() -> None:
        opened = Run.open(run.path)
        opened.read_metrics()
        opened.summary()

    with pytest.raises(RunError, match=name):
        read()


def test_a_file_without_a_floor_is_not_read(tmp_path, monkeypatch):
    """A sparse file: a terabyte that takes no room on the disk."""
    path = tmp_path / "metrics.csv"
    with path.open("wb") as file:
        file.truncate(2**40)
    assert peak(read_metrics, path, r"metrics\.csv has 1,099,512 MB") < 3_000_000
    assert reading.LARGEST_TEXT < 2**30
    monkeypatch.setattr(reading, "LARGEST_TEXT", 1_000_000)
    endless = path.rename(tmp_path / "episodes.jsonl")
    message = r"episodes\.jsonl has a line of more than 1 MB"
    assert peak(lambda path: list(find_logs(path)[0].read()), endless, message) < 5_000_000


@pytest.mark.parametrize("task", ["gym:evil:Trap-v0", "gym:CartPole-v1"])
def test_a_run_does_not_choose_what_is_imported(task, tmp_path, monkeypatch):
    """Gymnasium imports what stands before a colon in the name of an environment."""
    from synthetic_returns.presets import preset
    from synthetic_returns.training.run_config import read_config

    touch = f"import pathlib\npathlib.Path({str(tmp_path / 'executed')!r}).touch()"
    (tmp_path / "evil.py").write_text(touch)
    monkeypatch.delitem(sys.modules, "evil", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    config = json.loads(json.dumps(preset("gym:CartPole-v1").to_dict()))
    config |= {"task_name": task, "task": config["task"] | {"env_id": "evil:Trap-v0"}}
    Run.create(tmp_path / "run", config, ["train"]).close()
    message = r"would import the module 'evil': if you trust the run, set SYNTHETIC_RETURNS_IMPORT"
    with pytest.raises(RunError, match=message):
        read_config(Run.open(tmp_path / "run"))
    assert not (tmp_path / "executed").exists()
    monkeypatch.setenv("SYNTHETIC_RETURNS_IMPORT", "evil")
    with pytest.raises(RunError, match="cannot read its settings"):  # there is no such environment
        read_config(Run.open(tmp_path / "run"))
    assert (tmp_path / "executed").exists()
