"""A file from a stranger can be refused, by its name; it crashes, executes and fills nothing."""

import logging
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from synthetic_returns.cli import _is_message
from tests.hostile.mutations import mutate
from tests.hostile.readers import READERS, Reader, load_agent

FEW, SECONDS = 40, 1.0  # files per reader in the normal suite, and the time after which it ends
MANY, MINUTES = 4000, 4.0  # in the slow one


def attack(reader: Reader, folder: Path, files: int, seconds: float) -> tuple[int, int]:
    """Reads changed files; gives how many there were, and how many were refused."""
    mark = folder.parent / "executed"
    reader.make(folder)
    reader.read(folder)  # the sound ones are read
    paths = sorted(path for path in folder.glob(reader.files) if path.is_file())
    assert paths
    files, refused = max(4, files // reader.cost), 0
    deadline = time.monotonic() + seconds
    for seed in range(files):
        rng = np.random.default_rng(seed)
        path = paths[int(rng.integers(len(paths)))]
        sound = path.read_bytes()
        path.write_bytes(mutate(rng, sound, path.suffix, mark))
        try:
            reader.read(folder)
        except Exception as error:
            refused += 1
            check_refusal(error, folder, f"{path.name} seed {seed}")
        finally:
            path.write_bytes(sound)
        assert not mark.exists(), f"{path.name} seed {seed} was executed"
        if time.monotonic() > deadline:
            return seed + 1, refused
    return files, refused


def check_refusal(error: Exception, folder: Path, what: str) -> None:
    """What is wrong with a file is a message of ours that names it."""
    if not isinstance(error, ValueError | FileNotFoundError) or not _is_message(error):
        raise AssertionError(f"{what}: {error!r}") from error
    named = str(folder) in str(error) or "of the sweep" in str(error)
    assert named, f"{what}: {error!r}"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "stranger").mkdir()
    return tmp_path / "stranger"


@pytest.mark.parametrize("name", READERS)
def test_changed_files_are_read_or_refused(name, folder, caplog):
    with caplog.at_level(logging.CRITICAL):
        files, refused = attack(READERS[name], folder, FEW, SECONDS)
    assert files
    assert refused or name == "replay"  # a run goes on without its replay


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_thousands_of_changed_files(name, folder, caplog, capsys):
    with caplog.at_level(logging.CRITICAL):
        files, refused = attack(READERS[name], folder, MANY, 60 * MINUTES)
    with capsys.disabled():
        print(f"\n{name}: {files} files, {refused} refused")
    assert files > 20


@pytest.mark.slow
def test_agents_of_changed_settings(folder, chain_run, capsys):
    def copy(folder: Path) -> None:
        shutil.copytree(chain_run, folder / "run")

    files, refused = attack(Reader(copy, load_agent, "run/config.json"), folder, 200, 60 * MINUTES)
    with capsys.disabled():
        print(f"\nagent: {files} files, {refused} refused")
    assert refused
