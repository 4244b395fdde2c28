"""Ablation: what each choice of the episodic learner buys, one removed at a time."""

import dataclasses
from pathlib import Path

from matplotlib.axes import Axes

from synthetic_returns.experiments.experiment import EPISODIC, Arm, Experiment
from synthetic_returns.experiments.figures.style import new_figure, save, steps_axis
from synthetic_returns.experiments.outcome import Outcomes
from synthetic_returns.experiments.studies.catch import CATCH_DELAYED_20
from synthetic_returns.experiments.studies.key_to_door import KEY_TO_DOOR
from synthetic_returns.experiments.study import Results, Study

__all__ = ["EXPERIMENTS", "STUDY"]

REMOVED = {
    "not-centred": ("c not centred", ("--credit.no-centred",)),
    "detached": ("no gradient into the encoder", ("--credit.no-encoder-gradient",)),
    "sigmoid-gate": ("sigmoid gate", ("--credit.gate", "sigmoid")),
    "no-time": ("no episode time", ("--credit.no-time-features",)),
    # The variance gate needs two stages.
    "one-stage": (
        "one stage, sigmoid gate",
        ("--credit.no-two-stage", "--credit.gate", "sigmoid"),
    ),
    "not-standardised": ("rewards not standardised", ("--credit.no-standardise",)),
    "not-sparse": ("no cost on the size of c", ("--credit.sparsity", "0")),
    "no-trust": ("no trust", ("--credit.no-trust",)),
}

ARMS = (
    dataclasses.replace(EPISODIC, label="everything"),
    *(
        Arm(name, label, "#7a7a7a", flags, EPISODIC.preset)
        for name, (label, flags) in REMOVED.items()
    ),
)

EXPERIMENTS = tuple(
    dataclasses.replace(
        experiment,
        name=f"ablation-{experiment.name}",
        arms=ARMS,
        bars=(),
        quick_steps=None,
        runs=experiment.name,
    )
    for experiment in (CATCH_DELAYED_20, KEY_TO_DOOR)
)


def draw(results: Results, out: Path) -> list[Path]:
    """Steps to solve of every seed; a cross at the right for a seed that did not."""
    figure = new_figure(3.2)
    axes = figure.subplots(1, len(EXPERIMENTS), sharey=True)
    for ax, experiment in zip(axes, EXPERIMENTS, strict=True):
        _draw_steps(ax, experiment, results[experiment.name])
    return [save(figure, out / "ablation.png")]


def _draw_steps(ax: Axes, experiment: Experiment, outcomes: Outcomes) -> None:
    for place, runs in enumerate(outcomes.values()):
        for run in runs:
            solving = run.solving
            at = run.steps[solving.row] if solving else run.steps[-1]
            marker = "o" if solving else "x"
            ax.scatter(at, place, marker=marker, color=run.arm.colour, s=28, alpha=0.8)
    ax.set_yticks(range(len(outcomes)), [runs[0].arm.label for runs in outcomes.values()])
    ax.set_ylim(len(outcomes) - 0.5, -0.5)
    ax.set_title(experiment.title)
    steps_axis(ax)
    ax.set_xlabel("million steps to solve it; cross: not solved")
    ax.set_xlim(0, 1.04 * experiment.steps)


STUDY = Study("ablation", "one choice of the episodic learner removed at a time", EXPERIMENTS, draw)
