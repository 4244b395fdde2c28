"""Learning: with synthetic returns the Chain is solved, without them it is not."""

from typing import Any

import pytest

from synthetic_returns.credit.none import NoCredit
from synthetic_returns.presets import preset
from synthetic_returns.training.trainer import train

# A shorter chain than the preset's: the paper's own method, which learns on unrolls in the agent's
# update, would take minutes.
SHORT: dict[str, Any] = {"length": 9, "trigger": 3, "free_moves": 4}
BUDGETS = {"fast": (SHORT, 12_000), "paper": (SHORT, 80_000)}


@pytest.mark.parametrize(
    ("name", "credit"),
    [
        ("fast", True),
        ("fast", False),
        ("paper", True),
        pytest.param("paper", False, marks=pytest.mark.slow),
    ],
)
def test_chain(tmp_path, name, credit):
    parameters, steps = BUDGETS[name]
    config = preset("chain", name, **parameters).changed(
        {"reporting.eval_episodes": 100, "reporting.traces": 0, "engine.devices": 1}, steps=steps
    )
    if not credit:
        config = config.changed(credit=NoCredit())
    success = train(config, out=tmp_path / "run").summary()["eval"]["success"]
    assert success > 0.9 if credit else success < 0.3
