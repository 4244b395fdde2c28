"""The package needs no deep-learning framework but JAX, and says so where it needs one."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
sys.modules["stable_baselines3"] = None  # as if it were not installed
import synthetic_returns as sr
sr.SyntheticReturnsVectorWrapper
assert "torch" not in sys.modules
sr.SyntheticReturnsVecEnv
"""


def test_without_stable_baselines3():
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=120
    )
    assert process.returncode
    last = process.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: Stable-Baselines3 is not installed")
    assert "pip install 'synthetic-returns[sb3]'" in last


def test_unknown_names_are_attribute_errors():
    import synthetic_returns as sr

    with pytest.raises(AttributeError, match="NoSuchWrapper"):
        _ = sr.NoSuchWrapper
