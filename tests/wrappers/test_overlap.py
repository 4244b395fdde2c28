"""Learning beside the agent: the same is learned, and paid one round of learning later."""

import gymnasium
import jax
import numpy as np
import pytest

from synthetic_returns.wrappers.pieces import PieceCredit
from synthetic_returns.wrappers.stream import StreamCredit
from tests.wrappers.made_up import ACTIONS, ADVANCE, Piece, made_up_episode, part

ROUND = 4  # episodes that are learned from together


def make(overlap: bool) -> PieceCredit:
    box = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    return PieceCredit(
        StreamCredit(
            box, gymnasium.spaces.Discrete(ACTIONS), 1, method=ADVANCE, max_episode_steps=8,
            learn_every=ROUND, overlap=overlap,
        )
    )  # fmt: skip


def paid(pieces: PieceCredit, episode: Piece, name: str) -> np.ndarray:
    unfinished = part(episode, 0, len(episode) - 1)  # nothing is learned from it
    return pieces.pay([pieces.add(name, unfinished)])[0]


def test_payments_lag_by_one_round_and_learning_does_not():
    plain, overlapped = make(False), make(True)
    probe = made_up_episode(1000, 5)
    before = [paid(plain, probe, "start")]
    for number in range(5 * ROUND):
        for pieces in (plain, overlapped):
            pieces.add(number, made_up_episode(number, 5))
        now = paid(plain, probe, f"probe {number}")
        lagging = paid(overlapped, probe, f"probe {number}")
        rounds = (number + 1) // ROUND
        if (number + 1) % ROUND == 0:
            before.append(now)
        np.testing.assert_array_equal(lagging, before[max(0, rounds - 1)])
    assert np.abs(before[-1] - before[-2]).max() > 1e-3
    states = (jax.tree.leaves(pieces.credit.driver.state) for pieces in (plain, overlapped))
    for x, y in zip(*states, strict=True):
        np.testing.assert_array_equal(x, y)


def test_what_was_loaded_is_paid_at_once(tmp_path):
    overlapped, probe = make(True), made_up_episode(1000, 5)
    for number in range(3 * ROUND):
        overlapped.add(number, made_up_episode(number, 5))
    overlapped.credit.save(tmp_path / "credit.npz")
    plain = make(False)
    for pieces in (plain, overlapped):
        pieces.credit.load(tmp_path / "credit.npz")
    np.testing.assert_array_equal(paid(plain, probe, "a"), paid(overlapped, probe, "a"))


def test_what_goes_wrong_beside_is_raised(monkeypatch):
    overlapped = make(True)
    monkeypatch.setattr(overlapped.credit.driver, "train", lambda *_: 1 / 0)
    for number in range(ROUND):
        overlapped.add(number, made_up_episode(number, 5))
    with pytest.raises(ZeroDivisionError):
        overlapped.credit.report()
