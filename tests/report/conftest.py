"""Small trained runs and pages of them, made once for all tests of this folder."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from synthetic_returns.presets import preset
from synthetic_returns.recording import Recording
from synthetic_returns.trainer import train


def tiny_run(folder: Path, task: str, **changes) -> Path:
    """A run that has learned nothing, in seconds."""
    small = {"steps": 960, "log_every": 320, "eval_episodes": 4, "num_envs": 8, "traces": 2}
    config = dataclasses.replace(preset(task, "fast"), **small | changes)
    return train(config, out=folder / f"{task}-{changes.get('seed', 0)}").path


@pytest.fixture(scope="session")
def key_run(tmp_path_factory) -> Path:
    return tiny_run(tmp_path_factory.mktemp("runs"), "key-to-door")


@pytest.fixture(scope="session")
def chain_run(tmp_path_factory) -> Path:
    return tiny_run(tmp_path_factory.mktemp("runs"), "chain")


def made_up(steps: int = 30, key_at: int = 7, total: float = 5.0, **changes) -> Recording:
    """An episode with a spike where a key is taken; frame t is t in every pixel."""
    x = np.arange(steps + 1)
    reward = np.where(x == steps, total, 0.0)
    c = np.where(x == key_at, 1.5, 0.02 * np.sin(x))
    frames = np.broadcast_to(x[:, None, None, None], (steps + 1, 4, 5, 3)).astype(np.uint8)
    shifted = np.where(x == 0, np.nan, 0.9 * reward)
    fields = {
        "frames": frames,
        "gate": np.where(x == 0, np.nan, (x == steps).astype(float)),
        "baseline": shifted / 2,
        "predicted": shifted,
        "events": {"key": (x == key_at) * 1.0, "apple": (x % 9 == 4) * 1.0, "door": x == steps},
        "phases": (("key room", 0), ("apple room", 10), ("door room", 28)),
    }
    return Recording(reward, c, **fields | changes)
