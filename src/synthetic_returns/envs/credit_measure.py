"""How a task tells whether credit goes where it should.

A task names one of these measures in ``credit_measure``; a report plays episodes, applies it and
prints the answer. Arrays are ``[T, B]``: B episodes side by side, each from its first state on.
"""

import abc
import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np

__all__ = [
    "CreditMeasure",
    "MassNearEvent",
    "PeakOnEvent",
    "TellsApart",
    "peak_share",
    "separation",
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CreditMeasure(abc.ABC):
    """A question about credit that has a number for an answer.

    Attributes:
      question: what is measured.
      required: what the answer should at least be.
      unit: of the answer.
      needs_failures: whether episodes of a random policy are needed, too: a good agent does
        nothing wrong that could be compared with what it does right.
    """

    question: str
    required: float
    unit: ClassVar[Literal["share", "AUC"]]
    needs_failures: ClassVar[bool] = False

    @abc.abstractmethod
    def measure(
        self, credit: np.ndarray, events: Mapping[str, np.ndarray], last: np.ndarray
    ) -> tuple[float, str]:
        """The answer, NaN if the episodes do not tell, and what it is made of.

        Args:
          credit: what each state earns for being arrived in.
          events: what happened on arriving there.
          last: where an episode ends.
        """


@dataclasses.dataclass(frozen=True, kw_only=True)
class PeakOnEvent(CreditMeasure):
    """The share of episodes in which an event earns the most.

    Attributes:
      event: its name.
      within: states at the beginning of an episode that are compared.
    """

    event: str
    within: int
    unit: ClassVar = "share"

    def measure(
        self, credit: np.ndarray, events: Mapping[str, np.ndarray], last: np.ndarray
    ) -> tuple[float, str]:
        """An episode without the event counts as one where the credit went elsewhere."""
        del last
        c, happened = credit[: self.within], events[self.event][: self.within]
        some = happened.max(axis=0) > 0
        of_these = peak_share(c[:, some], happened[:, some]) if some.any() else float("nan")
        return peak_share(c, happened), (
            f"{len(some)} episodes, {some.sum()} with the {self.event}; of those {of_these:.1%}"
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TellsApart(CreditMeasure):
    """How well credit separates an event that should earn from one that should cost.

    Attributes:
      good: the event that should earn, and what it is called when counted.
      bad: the one that should cost.
    """

    good: tuple[str, str]
    bad: tuple[str, str]
    unit: ClassVar = "AUC"
    needs_failures: ClassVar = True

    def measure(
        self, credit: np.ndarray, events: Mapping[str, np.ndarray], last: np.ndarray
    ) -> tuple[float, str]:
        """Events on the last step are left out: the terminal state earns nothing by definition."""
        good, bad = (credit[(events[event] > 0) & ~last] for event, _ in (self.good, self.bad))
        signs = (
            f"sign right for {np.mean(good > 0):.1%} and {np.mean(bad < 0):.1%}"
            if len(good) and len(bad)
            else "both kinds are needed"
        )
        return separation(good, bad), (
            f"{len(good)} {self.good[1]}, {len(bad)} {self.bad[1]} in {credit.shape[1]} episodes, "
            f"half of them played at random; {signs}"
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class MassNearEvent(CreditMeasure):
    """The share of all positive credit that is near an event, and its size there.

    Positive credit alone is asked where it is: the negative one of a state that every episode goes
    through says what all have in common. The size is the sum of all credit near an event, because
    it may be paid in several parts, some of which take others back. Near two events at once it
    counts for both of them.

    Attributes:
      event: its name.
      called: what several of them are called.
      within: steps before and after it that are near.
      worth: what one event is truly worth.
    """

    event: str
    called: str
    within: int
    worth: float
    unit: ClassVar = "share"

    def measure(
        self, credit: np.ndarray, events: Mapping[str, np.ndarray], last: np.ndarray
    ) -> tuple[float, str]:
        """The terminal state is left out: it earns nothing by definition."""
        running = np.cumsum(last, axis=0) == 0
        c = np.where(running, np.nan_to_num(credit), 0.0)
        happened = (events[self.event] > 0) & running
        near = np.zeros_like(happened)
        sizes = []
        for t, episode in np.argwhere(happened):
            around = slice(max(0, t - self.within), t + self.within + 1)
            near[around, episode] = True
            sizes.append(c[around, episode].sum())
        positive = np.maximum(c, 0)
        total = positive.sum()
        share = float(positive[near].sum() / total) if total > 0 else float("nan")
        detail = f"{credit.shape[1]} episodes, {len(sizes)} {self.called}"
        if not sizes:
            return share, detail
        low, high = np.percentile(sizes, (10, 90))
        return share, (
            f"{detail}; one earns {np.mean(sizes):.0f} where {self.worth:g} is true, 8 of 10 from "
            f"{low:.0f} to {high:.0f}"
        )


def peak_share(c: np.ndarray, happened: np.ndarray) -> float:
    """The share of episodes ``[T, B]`` whose largest c is on the step of an event.

    An episode in which the event does not happen counts as one where the credit went elsewhere.
    """
    at_peak = np.take_along_axis(happened > 0, np.argmax(c, axis=0)[None], axis=0)
    return float(np.mean(at_peak))


def separation(good: np.ndarray, bad: np.ndarray) -> float:
    """AUC: the chance that a good one has the larger c; a tie counts half. NaN if one is empty."""
    if not len(good) or not len(bad):
        return float("nan")
    difference = good[:, None] - bad[None, :]
    return float(np.mean((difference > 0) + 0.5 * (difference == 0)))
