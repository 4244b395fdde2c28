"""Parts: what each choice of the default method buys, one left out at a time."""

import dataclasses
from pathlib import Path

from synthetic_returns.experiments.experiment import Arm
from synthetic_returns.experiments.figures.steps_to_solve import draw_steps_to_solve
from synthetic_returns.experiments.method_arms import ADVANCE
from synthetic_returns.experiments.studies.untuned import (
    CATCH_20,
    HIDDEN,
    KEY_TO_DOOR,
    SCOREBOARD,
    TWO_KEYS,
    UMBRELLA_20,
)
from synthetic_returns.experiments.study import Results, Study

__all__ = ["EXPERIMENTS", "STUDY"]

# Of ``credit/advance/parts.py``, and the ages of episodes, which are a matter of the replay.
WITHOUT = {
    "u": "u, contributions of actions",
    "forecast": "the forecast",
    "ending": "what an end prevents",
    "usual": "comparing episodes of one age",
    "trust": "trust",
    "calibration": "trust above 1",
    "stakes": "counting episodes by what is at stake",
    "averaging": "averaging of the model",
    "certainty": "weights by certainty",
    "decay": "weight decay",
    "clipping": "clipping of gradients",
    "share": "the share of the end",
}
AGES = ("--credit.replay.no-same-age",)

ARMS = (
    dataclasses.replace(ADVANCE, label="everything"),
    *(
        Arm(f"no-{part}", f"without {label}", "#7a7a7a", (*ADVANCE.flags, "--credit.without", part))
        for part, label in WITHOUT.items()
    ),
    Arm("no-ages", "ages of episodes mixed", "#7a7a7a", (*ADVANCE.flags, *AGES)),
)

EXPERIMENTS = tuple(
    dataclasses.replace(
        experiment,
        name=experiment.name.replace("untuned", "parts"),
        arms=ARMS,
        seeds=2,
        bars=(),
        quick_steps=None,
        runs=experiment.name,
    )
    for experiment in (CATCH_20, KEY_TO_DOOR, HIDDEN, SCOREBOARD, UMBRELLA_20, TWO_KEYS)
)


def draw(results: Results, out: Path) -> list[Path]:
    """Steps to solve of every seed, with everything and without each part."""
    return [draw_steps_to_solve(results, EXPERIMENTS, out / "parts.png")]


STUDY = Study("parts", "one part of the default method left out at a time", EXPERIMENTS, draw)
