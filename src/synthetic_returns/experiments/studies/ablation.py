"""Ablation: what each choice of the episodic learner buys, one removed at a time."""

import dataclasses
from pathlib import Path

from synthetic_returns.experiments.experiment import EPISODIC, Arm
from synthetic_returns.experiments.figures.steps_to_solve import draw_steps_to_solve
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
    return [draw_steps_to_solve(results, EXPERIMENTS, out / "ablation.png")]


STUDY = Study("ablation", "one choice of the episodic learner removed at a time", EXPERIMENTS, draw)
