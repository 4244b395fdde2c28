"""Episodes that arrive in pieces: put together by name, learned from, and paid.

Stable-Baselines3 and Gymnasium step all environments together. Collectors of other libraries hand
over stretches of episodes instead, and say which episode each belongs to.
"""

import collections
import dataclasses
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from synthetic_returns.credit.choosing import check_single_transitions
from synthetic_returns.credit.data.episode import Segment
from synthetic_returns.credit.settlement import at_ends
from synthetic_returns.wrappers.stream import StreamCredit

__all__ = ["Arrived", "Piece", "PieceCredit"]

MOST_RUNNING = 10_000  # episodes that wait for their end; some collectors never send it


@dataclasses.dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive steps of one episode, as the library gives them.

    Attributes:
      observation: the states that were left, ``[n, ...]``.
      arrived: the states that were arrived in.
      action: what was done, where the method takes it.
      reward: the reward of each step.
      ended: whether the last of these steps ended the episode.
      terminated: whether it ended it for good.
    """

    observation: np.ndarray
    arrived: np.ndarray
    action: np.ndarray | None
    reward: np.ndarray
    ended: bool
    terminated: bool

    def __len__(self) -> int:
        return len(self.reward)


@dataclasses.dataclass(eq=False)
class Running:
    """An episode, as far as its pieces have arrived.

    Attributes:
      number: counts episodes.
      time: steps so far.
      advanced: what it was paid ahead of its rewards.
      pieces: what was seen of it.
    """

    number: int
    time: int = 0
    advanced: float = 0.0
    pieces: list[Piece] = dataclasses.field(default_factory=list)


class Arrived(NamedTuple):
    """A piece that was taken in.

    Attributes:
      episode: that it belongs to.
      start: how long the episode had lasted before.
      piece: as the method sees it.
    """

    episode: Running
    start: int
    piece: Piece

    @property
    def time(self) -> np.ndarray:
        """How long the episode had lasted before each step."""
        return self.start + np.arange(len(self.piece))


class PieceCredit:
    """A credit method that learns from pieces of episodes, and pays them.

    Attributes:
      credit: the method at work.
      begun: how many episodes there were.
    """

    def __init__(self, credit: StreamCredit, begun: int = 0):
        """Nothing has arrived yet.

        Args:
          credit: the method at work, made for one environment.
          begun: how many episodes there were before.
        """
        check_single_transitions(credit.driver.method)
        self.credit = credit
        self._running: collections.OrderedDict[Hashable, Running] = collections.OrderedDict()
        self.begun = begun

    def add(self, name: Hashable, piece: Piece) -> Arrived:
        """Adds the next piece of an episode; learns from the episode if it is the last one.

        A piece that does not go on where the one before ended starts another episode: the first one
        was interrupted, and is forgotten.

        Args:
          name: of the episode; pieces of one name follow each other.
          piece: at least one step.
        """
        seen = dataclasses.replace(
            piece,
            observation=self.credit.kept(piece.observation),
            arrived=self.credit.kept(piece.arrived),
            action=self._did(piece.action),
            reward=np.asarray(piece.reward, np.float32).reshape(-1),
        )
        episode = self._running.pop(name, None)
        if episode is None or not np.array_equal(
            episode.pieces[-1].arrived[-1], seen.observation[0]
        ):
            episode = Running(self.begun)
            self.begun += 1
        start = episode.time
        episode.pieces.append(seen)
        episode.time += len(seen)
        if seen.ended:
            self.credit.driver.observe(_whole(episode.pieces))
        else:
            self._running[name] = episode
            if len(self._running) > MOST_RUNNING:
                self._running.popitem(last=False)
        return Arrived(episode, start, seen)

    def pay(self, arrived: Sequence[Arrived]) -> list[np.ndarray]:
        """What each step of new pieces is paid, by what is known now.

        The last step of an episode settles what the steps before were paid, if the method conserves
        rewards; so every piece has to be paid once, and in order.

        Args:
          arrived: what ``add`` returned.
        """
        if not arrived:
            return []
        driver, mix = self.credit.driver, self.credit.mix
        pieces = [one.piece for one in arrived]
        actions = [piece.action for piece in pieces if piece.action is not None]
        earned = driver.credit_at(
            np.concatenate([piece.observation for piece in pieces]),
            np.concatenate([piece.arrived for piece in pieces]),
            np.concatenate(actions) if actions else None,
            np.concatenate([one.time for one in arrived]),
        )
        paid = []
        ends = np.cumsum([len(piece) for piece in pieces])[:-1]
        for (episode, _, piece), credit in zip(arrived, np.split(earned, ends), strict=True):
            last = np.zeros(len(piece), bool)
            last[-1] = piece.ended
            advanced = episode.advanced + float(credit[:-1].sum())
            credit = at_ends(credit, last, advanced if driver.method.conserves else 0)
            episode.advanced += float(credit.sum())
            paid.append(mix.augmented(piece.reward, credit, last))
        return paid

    def earned(
        self,
        observation: np.ndarray,
        arrived: np.ndarray,
        action: np.ndarray | None,
        time: np.ndarray,
    ) -> np.ndarray:
        """What transitions that do not end their episodes earn now, ``[n]``.

        Args:
          observation: the states that were left, as the library gives them.
          arrived: the states that were arrived in.
          action: what was done.
          time: how long the episode of each had lasted.
        """
        if not len(time):
            return np.zeros(0, np.float32)
        kept = self.credit.kept
        return self.credit.driver.credit_at(
            kept(observation), kept(arrived), self._did(action), time
        )

    def _did(self, action: np.ndarray | None) -> np.ndarray | None:
        """Actions as the method takes them, ``[n, ...]``; None where it takes none."""
        spec = self.credit.driver.spec
        if spec.action_dtype is None or action is None:
            return None
        return np.asarray(action).reshape(-1, *spec.action_shape).astype(spec.action_dtype)


def _whole(pieces: Sequence[Piece]) -> Segment:
    """A finished episode, as a segment of one environment."""
    states = [*(piece.observation for piece in pieces), pieces[-1].arrived[-1:]]
    reward = np.concatenate([piece.reward for piece in pieces])
    discount = np.ones(len(reward), np.float32)
    discount[-1] = 0 if pieces[-1].terminated else 1
    actions = [piece.action for piece in pieces if piece.action is not None]
    return Segment.of_episodes(
        np.array([len(reward)], np.int32),
        observation=np.concatenate(states)[:, None],
        reward=reward[:, None],
        discount=discount[:, None],
        action=np.concatenate(actions)[:, None] if actions else None,
    )
