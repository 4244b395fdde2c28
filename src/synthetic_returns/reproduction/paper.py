"""The paper's own settings, for the record, beside ours."""

import dataclasses
from pathlib import Path

from synthetic_returns.reproduction.catch import CATCH_DELAYED_20
from synthetic_returns.reproduction.curves import draw_curves
from synthetic_returns.reproduction.experiment import Arm
from synthetic_returns.reproduction.key_to_door import KEY_TO_DOOR
from synthetic_returns.reproduction.study import Results, Study
from synthetic_returns.reproduction.style import new_figure, save
from synthetic_returns.reproduction.table import read_paper_results

__all__ = ["EXPERIMENTS", "STUDY"]

ARMS = {
    "sr": Arm("paper-sr", "with SR, the paper's settings", "#9c4a00", preset="paper"),
    "no-sr": Arm(
        "paper-no-sr", "without SR, the paper's settings", "#0b3c6f", ("--no-sr",), preset="paper"
    ),
}
OURS = (CATCH_DELAYED_20, KEY_TO_DOOR)
EXPERIMENTS = tuple(
    dataclasses.replace(
        experiment,
        name=f"paper-{experiment.name}",
        steps=5_000_000,
        arms=(
            ARMS["sr"],
            # What the experiment gives the arm without synthetic returns beside --no-sr.
            ARMS["no-sr"].with_flags(*experiment.arms[1].flags[1:]),
        ),
        seeds=2,
        bars=(),
        quick_steps=None,
    )
    for experiment in OURS
)


def draw(results: Results, out: Path) -> list[Path]:
    """Success over steps on a logarithmic axis: both settings, and when the paper solved it."""
    figure = new_figure(3.2)
    published = {
        row["experiment"]: row["env_steps"] for row in read_paper_results() if row["arm"] == "sr"
    }
    for ax, experiment, ours in zip(figure.subplots(1, 2), EXPERIMENTS, OURS, strict=True):
        outcomes = results[experiment.name] | results.get(ours.name, {})
        draw_curves(
            ax, outcomes, "success", label="success", title=ours.title, solved=ours.solved, top=1
        )
        ax.set_xscale("log")
        ax.set_xlabel("environment steps")
        ax.set_xlim(2e4, 1e8)
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:.0e}".replace("e+0", "e"))
        if published[ours.name] == published[ours.name]:
            ax.axvline(published[ours.name], color="#9c4a00", linestyle=":", label="the paper")
    figure.axes[0].legend(loc="upper left", fontsize=7)
    return [save(figure, out / "paper.png")]


STUDY = Study(
    "paper", "the paper's presets on delayed Catch and Key-to-Door", EXPERIMENTS, draw, also=OURS
)
