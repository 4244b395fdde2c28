"""How good the credit is, in one number for each task: a picture can flatter."""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from synthetic_returns.agents.agent import Agent
from synthetic_returns.credit.explainer import Explainer
from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.credit_measure import CreditMeasure
from synthetic_returns.envs.spec import TaskSpec
from synthetic_returns.viewer.playing import Played, play

__all__ = ["CreditQuality", "credit_quality"]

EPISODES = 100
ON_HOST = 20  # episodes of environments that cannot be compiled, which are long and large
AT_ONCE = 10  # of these: their frames have to fit into memory


@dataclasses.dataclass(frozen=True)
class CreditQuality:
    """The answer to a task's ``CreditMeasure``.

    Attributes:
      question: what is measured.
      value: the answer; NaN if the episodes do not tell.
      required: what it should at least be.
      unit: "share" or "AUC".
      detail: what the number is made of.
    """

    question: str
    value: float
    required: float
    unit: str
    detail: str

    @property
    def holds(self) -> bool:
        """Whether the credit is as good as required; NaN never is."""
        return self.value >= self.required

    def shown(self, value: float) -> str:
        """A value in the unit of this measure."""
        if not np.isfinite(value):
            return "not known"
        return f"{value:.1%}" if self.unit == "share" else f"{self.unit} {value:.4f}"

    def __str__(self) -> str:
        value, required = self.shown(self.value), self.shown(self.required)
        verdict = "holds" if self.holds else "does NOT hold"
        return f"{self.question}: {value}, required {required}, {verdict} ({self.detail})"


def credit_quality(
    task: TaskSpec,
    agent: Agent,
    explainer: Explainer | None,
    *,
    episodes: int | None = None,
    seed: int = 0,
) -> CreditQuality | None:
    """Plays episodes and measures their credit; None if nothing is defined for the task."""
    measure = task.credit_measure
    if explainer is None or measure is None:
        return None
    if not isinstance(task, Environment):
        return _measured_in_parts(measure, task, agent, explainer, episodes or ON_HOST, seed)
    episodes = episodes or EPISODES
    played = play(task, agent, explainer, episodes, seed=seed)
    if measure.needs_failures:
        played = played.beside(play(task, agent, explainer, episodes, seed=seed, epsilon=1.0))
    return _measured(measure, played)


def _measured_in_parts(
    measure: CreditMeasure,
    task: TaskSpec,
    agent: Agent,
    explainer: Explainer,
    episodes: int,
    seed: int,
) -> CreditQuality:
    """Plays a few episodes at a time, and keeps what is measured of them."""
    epsilons = (0.0, 1.0) if measure.needs_failures else (0.0,)
    parts = [
        _Numbers.of(play(task, agent, explainer, count, seed=seed + number, epsilon=epsilon))
        for epsilon in epsilons
        for number, count in enumerate(_shares(episodes, AT_ONCE))
    ]
    return _Numbers.side_by_side(parts).answer(measure)


def _shares(whole: int, most: int) -> list[int]:
    return [min(most, whole - start) for start in range(0, whole, most)]


def _measured(measure: CreditMeasure, played: Played) -> CreditQuality:
    return _Numbers.of(played).answer(measure)


@dataclasses.dataclass(frozen=True)
class _Numbers:
    """What is measured of episodes; see ``CreditMeasure.measure``."""

    credit: np.ndarray
    events: dict[str, np.ndarray]
    last: np.ndarray

    @classmethod
    def of(cls, played: Played) -> "_Numbers":
        events = {name: np.asarray(x) for name, x in played.timestep.events.items()}
        return cls(played.credit(), events, np.asarray(played.timestep.last))

    @classmethod
    def side_by_side(cls, parts: Sequence["_Numbers"]) -> "_Numbers":
        """All episodes, padded to the longest; nothing is behind the end of one."""
        longest = max(len(part.last) for part in parts)

        def joined(arrays: Iterable[np.ndarray]) -> np.ndarray:
            padded = [np.pad(x, ((0, longest - len(x)), (0, 0))) for x in arrays]
            return np.concatenate(padded, axis=1)

        return cls(
            joined(part.credit for part in parts),
            {name: joined(part.events[name] for part in parts) for name in parts[0].events},
            joined(part.last for part in parts),
        )

    def answer(self, measure: CreditMeasure) -> CreditQuality:
        value, detail = measure.measure(self.credit, self.events, self.last)
        return CreditQuality(measure.question, value, measure.required, measure.unit, detail)
