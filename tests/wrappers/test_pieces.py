"""Episodes that arrive in pieces: put together, learned from once, and paid as whole ones are."""

import itertools
from typing import Any

import gymnasium
import numpy as np
import pytest

from synthetic_returns.wrappers.pieces import PieceCredit
from synthetic_returns.wrappers.stream import StreamCredit
from tests.wrappers.made_up import ACTIONS, ADVANCE, made_up_episode, part, wanted
from tests.wrappers.planned import Known
from tests.wrappers.small import METHOD

BOX = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
LENGTHS = (5, 3, 8, 1)


def make(method: Any = ADVANCE, **settings: Any) -> PieceCredit:
    discrete = gymnasium.spaces.Discrete(ACTIONS)
    settings = {"max_episode_steps": 8, "learn_every": 4} | settings
    return PieceCredit(StreamCredit(BOX, discrete, 1, method=method, **settings))


@pytest.fixture(scope="module")
def learned() -> PieceCredit:
    pieces = make()
    for number in range(20):
        pieces.add(number, made_up_episode(number, LENGTHS[number % 4]))
    return pieces


def test_episodes_are_put_together(monkeypatch):
    pieces = make(learn_every=1)
    heard: list[Any] = []
    monkeypatch.setattr(pieces.credit.driver, "learn", heard.extend)
    first = made_up_episode(0, 5)
    second = made_up_episode(1, 3, terminated=False)
    starts = [
        pieces.add("a", part(first, 0, 2)).start,
        pieces.add("b", part(second, 0, 1)).start,
        pieces.add("a", part(first, 2, 4)).start,
        pieces.add("b", part(second, 1, 3)).start,
        pieces.add("a", part(first, 4, 5)).start,
    ]
    assert starts == [0, 0, 2, 1, 4]
    assert pieces.begun == 2
    for episode, whole in zip(heard, (second, first), strict=True):
        states = np.concatenate([whole.observation, whole.arrived[-1:]])
        np.testing.assert_array_equal(episode.observation, states)
        np.testing.assert_array_equal(episode.reward, whole.reward)
        np.testing.assert_array_equal(episode.action, whole.action)
        discount = [1.0] * (len(whole) - 1) + [0.0 if whole.terminated else 1.0]
        np.testing.assert_array_equal(episode.discount, discount)


def test_an_interrupted_episode_is_forgotten(monkeypatch):
    pieces = make(learn_every=1)
    heard: list[Any] = []
    monkeypatch.setattr(pieces.credit.driver, "learn", heard.extend)
    pieces.add("a", part(made_up_episode(0, 5), 0, 2))
    new = pieces.add("a", made_up_episode(1, 3))  # does not go on where the first one was
    assert (new.start, new.episode.number) == (0, 1)
    assert [len(episode) for episode in heard] == [3]


@pytest.mark.parametrize("cuts", [[], [1], [2, 3, 4]])
def test_what_is_paid(learned, cuts):
    pieces = PieceCredit(learned.credit)
    pieces.credit.freeze()
    episode = made_up_episode(100, 5)
    edges = [0, *cuts, 5]
    paid = []
    for start, stop in itertools.pairwise(edges):
        paid += pieces.pay([pieces.add("a", part(episode, start, stop))])
    paid = np.concatenate(paid)
    np.testing.assert_allclose(paid, wanted(pieces.credit, episode), rtol=1e-4, atol=1e-4)
    assert np.abs(paid - episode.reward).max() > 0.01
    assert paid.sum() == pytest.approx(episode.reward.sum(), abs=1e-4)


def test_several_pieces_are_paid_at_once(learned):
    pieces = PieceCredit(learned.credit)
    pieces.credit.freeze()
    episodes = {name: made_up_episode(200 + name, steps) for name, steps in enumerate(LENGTHS)}
    arrived = [pieces.add(name, episode) for name, episode in episodes.items()]
    for episode, paid in zip(episodes.values(), pieces.pay(arrived), strict=True):
        np.testing.assert_allclose(paid, wanted(pieces.credit, episode), rtol=1e-4, atol=1e-4)
    assert pieces.pay([]) == []


def test_weights_of_a_method_that_does_not_conserve():
    pieces = make(METHOD, alpha=0.5, beta=2.0)
    for number in range(8):
        pieces.add(number, made_up_episode(number, 5))
    pieces.credit.freeze()
    episode = made_up_episode(100, 5)
    (paid,) = pieces.pay([pieces.add("a", episode)])
    np.testing.assert_allclose(paid, wanted(pieces.credit, episode), rtol=1e-4, atol=1e-4)
    assert paid[-1] == pytest.approx(2 * episode.reward[-1])


def test_a_method_that_needs_the_past_is_refused():
    with pytest.raises(ValueError, match=r"'known' gives a transition depends on all.*'advance'"):
        make(Known())
