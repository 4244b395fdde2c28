"""Chain: the paper's figure chain_task."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from synthetic_returns.experiments.experiment import Bar, Experiment
from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import new_figure, save
from synthetic_returns.experiments.outcome import Outcome
from synthetic_returns.experiments.study import Results, Study
from synthetic_returns.utils.tables import write_csv

__all__ = ["CHAIN", "STUDY"]

CHAIN = Experiment(
    name="chain",
    title="Chain",
    task="chain",
    steps=200_000,
    quick_steps=100_000,
    solved=0.98,
    credited="trigger",
    bars=(
        Bar("episodic", "eval_success", at_least=0.98),
        Bar("episodic", "credit_ratio_learning", at_least=5.0),
        Bar("episodic", "credit_ratio_end", at_least=5.0),
        Bar("none", "eval_success", at_most=0.05),
    ),
)

PHASES = {"learning": ("while learning", "#f4a6a0"), "end": ("at the end", "#c0392b")}


def draw(results: Results, out: Path) -> list[Path]:
    """Learning curves, and the credit of each state right of the start."""
    outcomes = results["chain"]
    figure = new_figure(2.9)
    curves, states = figure.subplots(1, 2)
    draw_curves(
        curves, outcomes, "success", label="success", title="Chain", solved=CHAIN.solved, top=1.0
    )
    curves.legend(loc="best")
    _draw_states(states, outcomes["episodic"], out / "chain" / "contributions.csv")
    return [save(figure, out / "chain.png")]


def _draw_states(ax: Axes, runs: list[Outcome], record: Path) -> None:
    """The scripted policy walks right, so its trace visits one state after the other."""
    trigger = runs[0].config["task"]["trigger"]
    furthest = min(runs[0].config["task"]["free_moves"], runs[0].config["task"]["length"] // 2)
    states = np.arange(1, furthest + 1)
    explanation = runs[0].scripted_traces()["end"].explanation
    name = explanation.credit
    assert name is not None
    rows = []
    for phase, (label, colour) in PHASES.items():
        traces = [run.scripted_traces()[phase] for run in runs]
        credit = np.stack([np.asarray(trace.explanation.paid)[states] for trace in traces])
        rows += [
            {
                "seed": run.seed,
                "phase": phase,
                "training_steps": trace.step,
                "state": state,
                name: x,
            }
            for run, trace, values in zip(runs, traces, credit, strict=True)
            for state, x in zip(states, values, strict=True)
        ]
        mean, std = credit.mean(axis=0), credit.std(axis=0)
        ax.plot(states, mean, color=colour, marker="o", markersize=3, label=label)
        ax.fill_between(states, mean - std, mean + std, color=colour, alpha=0.25, linewidth=0)
    ax.axvline(trigger, color="#666666", linestyle="--", linewidth=1, label="trigger")
    ax.set_title("Credit of each state, mean ± std of seeds", fontsize=9)
    ax.set_xlabel("state, counted from the start to the right")
    ax.set_ylabel(explanation.terms[name].label)
    ax.set_xticks(states)
    ax.legend(loc="upper left")
    write_csv(record, rows)


STUDY = Study("chain", "the trigger state and its infinite delay", (CHAIN,), draw)
