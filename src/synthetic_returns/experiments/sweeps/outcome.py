"""What the trials of a sweep came to, as rows, a figure and the importance of each setting."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import optuna
from matplotlib.axes import Axes
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.study import Study
from optuna.trial import FrozenTrial

from synthetic_returns.experiments.figures.style import STYLE, new_figure, save, steps_axis
from synthetic_returns.experiments.sweeps.study import REPORTS, Settings, TrialState, quiet
from synthetic_returns.utils.files import RunError
from synthetic_returns.utils.tables import write_csv

__all__ = ["Outcome", "read_outcomes", "setting_importance", "write_sweep"]

ENDS = {
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}
TOP = 0.25  # of the trials: importance is what tells them from all
FEWEST = 8  # trials that say anything about importance
BEST, WORST = "#e8710a", "#888888"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One trial.

    Attributes:
      number: of the trial.
      end: how it ended.
      value: the metric in the final evaluation; where it was stopped early, its last value.
      values: the drawn settings, by name.
      curve: the metric over training, by environment steps.
      note: why it failed.
    """

    number: int
    end: str
    value: float
    values: Mapping[str, Any]
    curve: Mapping[int, float]
    note: str = ""

    def row(self) -> dict[str, Any]:
        """For CSV files and tables."""
        found = {"trial": self.number, "end": self.end, "value": self.value}
        return found | {"env_steps": max(self.curve, default=0)} | dict(self.values)


def read_outcomes(study: Study, settings: Settings) -> list[Outcome]:
    """All trials, the best first; those without a value last."""
    try:
        outcomes = [_read(trial, settings) for trial in study.get_trials(deepcopy=False)]
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise RunError(
            f"a trial of the sweep {study.study_name} cannot be read ({error!r}): restore its "
            "record, or start another sweep"
        ) from error
    return sorted(outcomes, key=lambda o: (np.isnan(o.value), -np.nan_to_num(o.value), o.number))


def setting_importance(study: Study) -> dict[str, float]:
    """How much each setting matters for being among the best quarter; the sum is 1.

    PED-ANOVA (Watanabe et al. 2023) on all trials that have a value, the pruned ones too: without
    them, it would only be seen what tells good settings from very good ones. Empty for few trials.
    """
    ended = [t for t in study.get_trials(deepcopy=False) if t.state.is_finished()]
    valued = [t for t in ended if t.value is not None]
    if len(valued) < FEWEST:
        return {}
    with quiet():
        copy = optuna.create_study(direction="maximize")
        copy.add_trials(
            optuna.trial.create_trial(
                params=t.params, distributions=t.distributions, value=t.value
            )
            for t in valued
        )  # fmt: skip
        evaluator = PedAnovaImportanceEvaluator(target_quantile=TOP)
        return get_param_importances(copy, evaluator=evaluator)


def write_sweep(study: Study, settings: Settings, out: Path) -> list[Path]:
    """Writes trials.csv, curves.csv, importance.csv and sweep.png; returns their paths."""
    outcomes, importance = read_outcomes(study, settings), setting_importance(study)
    tables = {
        "trials": [outcome.row() for outcome in outcomes],
        "curves": [
            {"trial": outcome.number, "env_steps": steps, settings.metric: value}
            for outcome in sorted(outcomes, key=lambda outcome: outcome.number)
            for steps, value in outcome.curve.items()
        ],
        "importance": [{"setting": name, "importance": x} for name, x in importance.items()],
    }
    written = []
    for name, rows in tables.items():
        if rows:
            write_csv(out / f"{name}.csv", rows)
            written.append(out / f"{name}.csv")
    with matplotlib.rc_context(STYLE):
        written.append(_draw(outcomes, importance, settings, out))
    return written


def _read(trial: FrozenTrial, settings: Settings) -> Outcome:
    curve = {
        int(part) * settings.steps // REPORTS: float(value)
        for part, value in sorted(trial.intermediate_values.items())
    }
    value = trial.value
    if value is None:
        value = next(reversed(curve.values()), float("nan"))
    return Outcome(
        number=trial.number,
        end=ENDS[trial.state],
        value=float(value),
        values=trial.params,
        curve=curve,
        note=trial.user_attrs.get("failure", ""),
    )


def _draw(
    outcomes: Sequence[Outcome], importance: Mapping[str, float], settings: Settings, out: Path
) -> Path:
    """Every trial in one of two halves, as in the paper's supplement, and what made them."""
    figure = new_figure(2.9)
    best, worst, bars = figure.subplots(1, 3, width_ratios=(1, 1, 0.9))
    middle = (len(outcomes) + 1) // 2
    _draw_half(best, outcomes[:middle], f"the best {middle} of {len(outcomes)}", BEST)
    _draw_half(worst, outcomes[middle:], f"the worst {len(outcomes) - middle}", WORST)
    worst.sharey(best)
    best.set_ylabel(settings.metric)
    names = list(importance)[::-1]
    bars.barh(
        [name.replace("_", " ") for name in names], [importance[n] for n in names], color=BEST
    )
    bars.set_title("importance" if importance else f"importance: needs {FEWEST} trials")
    bars.set_xlim(left=0)
    return save(figure, out / "sweep.png")


def _draw_half(ax: Axes, outcomes: Sequence[Outcome], title: str, colour: str) -> None:
    for outcome in outcomes:
        ax.plot(list(outcome.curve), list(outcome.curve.values()), color=colour, linewidth=0.9)
    ax.set_title(title)
    ax.set_xlim(left=0)
    steps_axis(ax)
