"""The paper's own settings, for the record, beside ours."""

import dataclasses
from pathlib import Path

from synthetic_returns.envs.registry import find_task
from synthetic_returns.experiments.experiment import PAPER
from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import new_figure, save
from synthetic_returns.experiments.studies.catch import CATCH_DELAYED_20
from synthetic_returns.experiments.studies.key_to_door import KEY_TO_DOOR
from synthetic_returns.experiments.study import Results, Study
from synthetic_returns.experiments.table import read_paper_results

__all__ = ["EXPERIMENTS", "STUDY"]

ARM = dataclasses.replace(PAPER, label="with SR, the paper's settings", colour="#9c4a00")
OURS = (CATCH_DELAYED_20, KEY_TO_DOOR)
EXPERIMENTS = tuple(
    dataclasses.replace(
        experiment,
        name=f"paper-{experiment.name}",
        steps=5_000_000,
        arms=(ARM,),
        seeds=2,
        bars=(),
        quick_steps=None,
    )
    for experiment in OURS
)


def draw(results: Results, out: Path) -> list[Path]:
    """Success over steps on a logarithmic axis: both settings, and what was published."""
    figure = new_figure(3.4)
    for ax, experiment, ours in zip(figure.subplots(1, 2), EXPERIMENTS, OURS, strict=True):
        outcomes = results[experiment.name] | results.get(ours.name, {})
        draw_curves(
            ax, outcomes, "success", label="success", title=ours.title, solved=ours.solved, top=1.0
        )
        ax.set_xscale("log")
        ax.set_xlabel("environment steps")
        ax.set_xlim(2e4, 1e8)
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:.0e}".replace("e+0", "e"))
        for row in read_paper_results():
            if (row["experiment"], row["arm"]) == (ours.name, "paper") and row["env_steps"] > 0:
                best = find_task(ours.task).optimal_return if row["measure"] == "return" else 1
                ax.plot(row["env_steps"], row["value"] / best, "*", color=ARM.colour,
                        markersize=11, label="published")  # fmt: skip
    lines = figure.axes[0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside lower center", ncols=3, fontsize=8)
    return [save(figure, out / "paper.png")]


STUDY = Study(
    "paper", "the paper's presets on delayed Catch and Key-to-Door", EXPERIMENTS, draw, also=OURS
)
