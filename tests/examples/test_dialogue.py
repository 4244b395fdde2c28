"""The dialogue example: learned credit follows the exact one, in shapes that others take."""

import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module("dialogue")


@pytest.mark.slow
def test_learned_credit_is_closer_to_the_exact_one(example):
    found = example.compare(episodes=500, updates=600)
    assert found["learned"] > 0.8
    assert found["uniform"] < 0.5
    assert found["discounted"] < 0.5


def test_tokens_get_the_advantage_of_their_turn(example):
    laid = example.to_tokens(np.array([[1.0, -2.0]]), np.array([[-1, 0, 0, -1, 1, -1]]))
    np.testing.assert_array_equal(laid, [[0, 1, 1, 0, -2, 0]])


@pytest.mark.parametrize("tensors", [False, True])
def test_the_estimator_has_the_signature_that_verl_documents(example, tensors):
    # compute_advantage of verl calls: fn(token_level_rewards=..., response_mask=..., config=...,
    # index=..., reward_baselines=...), the last two where it has them, and takes two (bs, length).
    inspect.signature(example.credit_estimator).bind(
        token_level_rewards=0, response_mask=0, config=0, index=0, reward_baselines=0
    )
    rewards = np.array([[0, 2.0, 0, 0, -1.0, 0], [0, 0, 1.0, 0, 0, 3.0]])
    mask = np.array([[1, 1, 0, 1, 1, 0], [1, 1, 1, 0, 1, 1.0]])
    if tensors:
        torch = pytest.importorskip("torch", reason="needs: pip install 'synthetic-returns[sb3]'")
        rewards, mask = torch.as_tensor(rewards), torch.as_tensor(mask)
    advantages, returns = example.credit_estimator(
        token_level_rewards=rewards, response_mask=mask, config=None, index=np.array(["a", "b"])
    )
    assert type(advantages) is type(rewards)
    assert advantages.shape == returns.shape == (2, 6)
    # The group of the first: tokens with 2, 2, -1, -1; their mean is 0.5.
    np.testing.assert_allclose(np.asarray(advantages[0]), [1.5, 1.5, 0, -1.5, -1.5, 0])
    np.testing.assert_allclose(np.asarray(advantages[1]), [-0.8, -0.8, -0.8, 0, 1.2, 1.2])
    np.testing.assert_allclose(np.asarray(returns[0]), [1, 1, 0, -1, -1, 0])
