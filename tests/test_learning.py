"""Learning: with synthetic returns the Chain is solved, without them it is not."""

import dataclasses

import pytest

from synthetic_returns.presets import preset
from synthetic_returns.training.trainer import train


@pytest.mark.parametrize("sr", [True, False])
def test_chain(tmp_path, sr):
    config = dataclasses.replace(
        preset("chain", "fast"), steps=100_000, sr=sr, eval_episodes=100, traces=0
    )
    success = train(config, out=tmp_path / "run").summary()["eval"]["success"]
    assert success > 0.9 if sr else success < 0.1
