"""From a run directory to the page of its episodes."""

import dataclasses
from pathlib import Path

from synthetic_returns.envs.registry import find_task
from synthetic_returns.viewer.opened_run import OpenedRun
from synthetic_returns.viewer.playing import play, record
from synthetic_returns.viewer.recording import Recording
from synthetic_returns.viewer.state_bars import StateBars, state_bars
from synthetic_returns.viewer.viewer import write_view

__all__ = ["RecordedRun", "record_run", "write_run_view"]


@dataclasses.dataclass(frozen=True)
class RecordedRun:
    """Episodes played by the agent of a run.

    Attributes:
      opened: the run.
      step: environment steps of training behind the agent.
      recordings: its episodes, the best first.
      bars: the credit of every state, if the task has few.
    """

    opened: OpenedRun
    step: int
    recordings: list[Recording]
    bars: StateBars | None


def record_run(path: Path, episodes: int, *, seed: int = 0, greedy: bool = False) -> RecordedRun:
    """Plays episodes with the newest checkpoint of a run."""
    opened = OpenedRun.open(path)
    step, agent, credit = opened.load()
    config = opened.config
    played = play(config.task, agent, credit, episodes, seed=seed, greedy=greedy)
    bars = state_bars(config.task, credit)
    return RecordedRun(opened, step, record(config.task, played), bars)


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
