"""The example agent: few changed lines, and they make the difference."""

import importlib.util
from pathlib import Path

import jax
import pytest

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "add_to_your_agent.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("add_to_your_agent", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fewer_than_15_lines_change():
    lines = EXAMPLE.read_text().splitlines()
    assert 0 < sum(line.endswith("# SR") for line in lines) < 15


def test_it_runs(example):
    with jax.numpy_dtype_promotion("standard"):  # a user's agent need not be strict
        assert 0 <= example.train(use_sr=True, steps=5_000) <= 1


@pytest.mark.slow
def test_solves_the_chain_only_with_synthetic_returns(example):
    with jax.numpy_dtype_promotion("standard"):  # a user's agent need not be strict
        assert example.train(use_sr=True, steps=200_000) > 0.9
        assert example.train(use_sr=False, steps=50_000) < 0.1
