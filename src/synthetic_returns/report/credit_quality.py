"""How good the credit is, in one number for each task: a picture can flatter."""

import dataclasses

import numpy as np

from synthetic_returns.agents.agent import Agent
from synthetic_returns.credit.explainer import Explainer
from synthetic_returns.envs.credit_measure import CreditMeasure
from synthetic_returns.envs.spec import TaskSpec
from synthetic_returns.viewer.playing import Played, play

__all__ = ["CreditQuality", "credit_quality"]

EPISODES = 100


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
    episodes: int = EPISODES,
    seed: int = 0,
) -> CreditQuality | None:
    """Plays episodes and measures their credit; None if nothing is defined for the task."""
    measure = task.credit_measure
    if explainer is None or measure is None:
        return None
    played = play(task, agent, explainer, episodes, seed=seed)
    if measure.needs_failures:
        played = played.beside(play(task, agent, explainer, episodes, seed=seed, epsilon=1.0))
    return _measured(measure, played)


def _measured(measure: CreditMeasure, played: Played) -> CreditQuality:
    value, detail = measure.measure(
        played.credit(),
        {name: np.asarray(x) for name, x in played.timestep.events.items()},
        np.asarray(played.timestep.last),
    )
    return CreditQuality(measure.question, value, measure.required, measure.unit, detail)
