"""Learning: with synthetic returns the Chain is solved, without them it is not."""

import pytest

from synthetic_returns.credit.none import NoCredit
from synthetic_returns.presets import preset
from synthetic_returns.training.trainer import train


@pytest.mark.parametrize("sr", [True, False])
def test_chain(tmp_path, sr):
    config = preset("chain", "fast").changed(
        {"reporting.eval_episodes": 100, "reporting.traces": 0}, steps=100_000
    )
    config = config if sr else config.changed(credit=NoCredit())
    success = train(config, out=tmp_path / "run").summary()["eval"]["success"]
    assert success > 0.9 if sr else success < 0.1
