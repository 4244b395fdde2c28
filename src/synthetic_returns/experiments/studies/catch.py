"""Catch: the paper's figures mini_skiing and, for 10 to 40 runs, mini_skiing_appendix."""

from pathlib import Path

from synthetic_returns.experiments.experiment import EPISODIC, WITHOUT, Bar, Experiment
from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import new_figure, save
from synthetic_returns.experiments.figures.traces import draw_traces
from synthetic_returns.experiments.study import Results, Study

__all__ = ["CATCH_DELAYED_20", "DELAYED", "STANDARD", "STUDY"]

STANDARD = tuple(
    Experiment(
        name=f"catch-{runs}",
        title=f"Catch, {runs} runs",
        task="catch",
        flags=("--task.runs", str(runs)),
        steps=500_000,
        quick_steps=250_000 if runs == 20 else None,
        solved=0.98,
        credited="catch",
        bars=tuple(Bar(arm, "eval_success", at_least=0.98) for arm in ("episodic", "none")),
    )
    for runs in (10, 20, 40)
)
CATCH_20 = STANDARD[1]


def _delayed(runs: int, steps: int, solved: float, quick_steps: int | None = None) -> Experiment:
    return Experiment(
        name=f"catch-delayed-{runs}",
        title=f"Delayed Catch, {runs} runs",
        task="catch-delayed",
        flags=("--task.runs", str(runs)),
        steps=steps,
        quick_steps=quick_steps,
        solved=solved,
        credited="catch",
        # The paper: without synthetic returns, a discount close to one is best here.
        arms=(EPISODIC, WITHOUT.with_flags("--agent.discount", "0.99")),
        bars=(Bar("episodic", "eval_success", at_least=solved),),
    )


CATCH_DELAYED_20 = _delayed(20, 600_000, 0.98, quick_steps=400_000)
DELAYED = (_delayed(10, 500_000, 0.98), CATCH_DELAYED_20, _delayed(40, 1_200_000, 0.975))


def draw(results: Results, out: Path) -> list[Path]:
    """The main figure, and the one over the number of runs."""
    figures = [_draw_catch(results, out / "catch.png")]
    rows = [[e for e in row if e.name in results] for row in (STANDARD, DELAYED)]
    if all(len(row) == len(STANDARD) for row in rows):
        figure = new_figure(4.6)
        for axes, row in zip(figure.subplots(2, 3, sharey=True), rows, strict=True):
            for ax, experiment in zip(axes, row, strict=True):
                draw_curves(
                    ax, results[experiment.name], "success", label="",
                    title=experiment.title, solved=experiment.solved, top=1.0,
                )  # fmt: skip
                ax.set_ylabel("share caught" if ax is axes[0] else "")
        lines = figure.axes[0].get_legend_handles_labels()
        figure.legend(*lines, loc="outside lower center", ncols=2)
        figures.append(save(figure, out / "catch-runs.png"))
    return figures


def _draw_catch(results: Results, path: Path) -> Path:
    """Learning curves with immediate and with delayed rewards, and three example episodes."""
    figure = new_figure(5.2)
    above, below = figure.subfigures(2, 1, squeeze=False)[:, 0]
    for ax, experiment in zip(above.subplots(1, 2), (CATCH_20, CATCH_DELAYED_20), strict=True):
        draw_curves(
            ax, results[experiment.name], "catch", label="balls caught", title=experiment.title,
            solved=20 * experiment.solved, top=20.0,
        )  # fmt: skip
    above.axes[-1].legend(loc="best")
    # An agent that catches every ball would not show what a miss costs.
    example = results[CATCH_DELAYED_20.name]["episodic"][0]
    traces = example.example_traces("exploring") or example.example_traces()
    draw_traces(below, traces, marks=example.event_marks)
    return save(figure, path)


STUDY = Study("catch", "immediate and delayed rewards, 10 to 40 runs", (*STANDARD, *DELAYED), draw)
