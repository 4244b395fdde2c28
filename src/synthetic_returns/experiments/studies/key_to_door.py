"""Key-to-Door: the paper's figures key_door and key_door_appendix, and a longer distractor."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes

from synthetic_returns.experiments.experiment import Bar, Experiment
from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import new_figure, save
from synthetic_returns.experiments.figures.traces import draw_trace, draw_traces, shade_phases
from synthetic_returns.experiments.outcome import Outcome
from synthetic_returns.experiments.study import Results, Study

__all__ = ["KEY_TO_DOOR", "STUDY", "VARIANTS"]

KEY_TO_DOOR = Experiment(
    name="key-to-door",
    title="Key-to-Door",
    task="key-to-door",
    steps=800_000,
    quick_steps=600_000,
    solved=0.98,
    credited="key",
    bars=(
        Bar("episodic", "eval_door", at_least=0.98),
        Bar("episodic", "eval_apple", at_least=21.0),
        Bar("none", "eval_door", at_most=0.3),
        Bar("none", "eval_apple", at_least=20.0),
    ),
)
VARIANTS = (
    Experiment(
        name="key-to-door-no-reward",
        title="The door pays nothing, waiting costs",
        task="key-to-door-no-reward",
        steps=800_000,
        solved=0.98,
        credited="key",
        bars=(
            Bar("episodic", "eval_door", at_least=0.98),
            Bar("episodic", "credit_ratio_end", at_least=1.0),
            Bar("none", "eval_door", at_most=0.5),
        ),
    ),
    Experiment(
        name="key-to-door-two-keys",
        title="Two keys, the yellow one is better",
        task="key-to-door-two-keys",
        steps=1_500_000,
        solved=0.98,
        credited="yellow_key",
        bars=(
            Bar("episodic", "eval_yellow_key", at_least=0.98),
            Bar("episodic", "eval_door", at_least=0.98),
        ),
    ),
    Experiment(
        name="key-to-door-250",
        title="250 distracting steps",
        task="key-to-door",
        # A third of the episodes in as many steps: explore for longer.
        flags=("--task.distractor-steps", "250", "--agent.entropy-cost", "0.1"),
        steps=2_000_000,
        solved=0.95,
        credited="key",
        bars=(Bar("episodic", "eval_door", at_least=0.95),),
    ),
)


def draw(results: Results, out: Path) -> list[Path]:
    """The main figure, and the one of the variants."""
    figures = []
    if "key-to-door" in results:
        outcomes = results["key-to-door"]
        figure = new_figure(5.2)
        above, below = figure.subfigures(2, 1, squeeze=False)[:, 0]
        apples, door = above.subplots(1, 2)
        draw_curves(apples, outcomes, "apple", label="apples taken", title="Key-to-Door: apples")
        apples.set_ylim(bottom=0)
        draw_curves(
            door, outcomes, "door", label="door opened", title="Key-to-Door: door", solved=0.98,
            top=1.0,
        )  # fmt: skip
        door.legend(loc="best")
        example = outcomes["episodic"][0]
        axes = draw_traces(below, example.example_traces(), marks=example.event_marks)
        _shade(axes, example)
        figures.append(save(figure, out / "key-to-door.png"))
    variants = [e for e in VARIANTS if e.name in results]
    if variants:
        figure = new_figure(2.3 * len(variants))
        rows = figure.subplots(len(variants), 2, squeeze=False)
        for (curves, trace), experiment in zip(rows, variants, strict=True):
            outcomes = results[experiment.name]
            draw_curves(
                curves, outcomes, "success", label="success", title=experiment.title,
                solved=experiment.solved, top=1.0,
            )  # fmt: skip
            run = outcomes["episodic"][0]
            draw_trace(
                trace, run.example_traces()[-1], "an episode at the end", marks=run.event_marks
            )
            trace.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=7)
            _shade([trace], run)
        rows[0][0].legend(loc="best")
        figures.append(save(figure, out / "key-to-door-variants.png"))
    return figures


def _shade(axes: Sequence[Axes], outcome: Outcome) -> None:
    task = outcome.config["task"]
    for ax in axes:
        shade_phases(ax, [task["key_steps"], task["distractor_steps"], task["door_steps"]])


STUDY = Study(
    "key-to-door", "a key, a distraction and a door, in four forms", (KEY_TO_DOOR, *VARIANTS), draw
)
