"""From a run directory to the page of its episodes."""

import dataclasses
from pathlib import Path

import numpy as np

from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.registry import find_task
from synthetic_returns.viewer.inline import inline_picture
from synthetic_returns.viewer.main_line import common_limits
from synthetic_returns.viewer.markup import tag
from synthetic_returns.viewer.meaning import credit_in_words
from synthetic_returns.viewer.opened_run import OpenedRun
from synthetic_returns.viewer.playing import play, record
from synthetic_returns.viewer.recording import Recording
from synthetic_returns.viewer.state_bars import StateBars, state_bars
from synthetic_returns.viewer.viewer import write_view

__all__ = ["RecordedRun", "record_run", "write_run_view"]

LEAST_EPSILON = 0.25  # share of random actions where an agent explores least
TRIED = 8  # episodes with random actions, from which those that are shown are chosen
RANDOM = 24  # episodes of random play that credit is compared with


@dataclasses.dataclass(frozen=True)
class RecordedRun:
    """Episodes played by the agent of a run.

    Attributes:
      opened: the run.
      step: environment steps of training behind the agent.
      recordings: its episodes, the best first; half of them played with random actions in between.
      bars: the credit of every state, if the task has few.
    """

    opened: OpenedRun
    step: int
    recordings: list[Recording]
    bars: StateBars | None

    def _repr_html_(self) -> str:
        """All episodes on one scale, in a notebook."""
        limits = common_limits(self.recordings)
        figures = [inline_picture(recording, limits) for recording in self.recordings]
        return tag("div", tag("p", credit_in_words(self.recordings)), figures)


def record_run(
    path: str | Path, episodes: int = 6, *, seed: int = 0, greedy: bool = False
) -> RecordedRun:
    """Plays episodes with the newest checkpoint of a run.

    Half of them are the agent's own. The others are played with random actions in between, and
    chosen for their different outcomes: an agent that does everything right does not show what a
    mistake costs.

    Args:
      path: the run directory.
      episodes: how many to show.
      seed: of everything random.
      greedy: whether the agent takes the most probable action instead of sampling.
    """
    opened = OpenedRun.open(Path(path))
    step, agent, explainer = opened.load()
    task = opened.config.task
    own, others = (episodes + 1) // 2, episodes // 2
    # What cannot be compiled plays slowly: no more than is shown.
    tried, random = (max(TRIED, others), RANDOM) if isinstance(task, Environment) else (others, 0)
    shares = np.linspace(LEAST_EPSILON, 1.0, tried).tolist()
    epsilon = [0.0] * own + shares + [1.0] * random
    played = play(task, agent, explainer, len(epsilon), seed=seed, greedy=greedy, epsilon=epsilon)
    by_return = own + np.argsort(played.returns()[own : own + tried])
    places = np.linspace(0, tried - 1, others).round().astype(int)
    shown = [*range(own), *by_return[places].tolist()]
    recordings = record(
        task,
        played.columns(shown),
        reference=played.columns(range(own + tried, len(epsilon))).reference() if random else None,
        players=[_player(epsilon[column]) for column in shown],
    )
    return RecordedRun(opened, step, recordings, state_bars(task, explainer))


def _player(epsilon: float) -> str:
    if epsilon == 0:
        return "the agent"
    return "random play" if epsilon == 1 else f"{epsilon:.0%} random"


def write_run_view(recorded: RecordedRun, out: Path) -> Path:
    """Writes the page."""
    config = recorded.opened.config
    task = find_task(config.task_name)
    facts = {
        "task": f"{task.name}: {task.description}",
        "preset": config.preset,
        "credit": config.credit.name,
        "seed": str(config.seed),
        "trained for": f"{recorded.step:,} steps",
        "run": str(recorded.opened.path),
    }
    return write_view(
        out,
        recorded.recordings,
        title=f"{task.name}: where the credit goes",
        facts=facts,
        meanings=task.events,
        bars=recorded.bars,
    )
