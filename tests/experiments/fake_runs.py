"""Finished run directories with made-up numbers: what the figures need, in milliseconds."""

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from synthetic_returns.config import Config
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.none import NoCredit
from synthetic_returns.envs.registry import find_task
from synthetic_returns.experiments.experiment import Arm, Experiment
from synthetic_returns.presets import preset
from synthetic_returns.training.runs import Run
from synthetic_returns.training.traces import Trace, trace_points

ROWS = 25
FEW = 3  # traces: early, in the middle, late


def fake_experiment(experiment: Experiment, root: Path) -> None:
    """Fakes every run that is not there yet."""
    for arm in experiment.arms:
        for seed in range(experiment.seeds):
            if not experiment.run_path(root, arm, seed).exists():
                fake_run(experiment, arm, seed, root, FEW)


def fake_run(
    experiment: Experiment, arm: Arm, seed: int, root: Path, most_traces: int = 20
) -> Path:
    """A run that climbs from 0 to 1 halfway if it has synthetic returns, and else stays at 0.1.

    It has as many traces as the experiment asks for, but at most so many.
    """
    events = find_task(experiment.task).events
    flags = experiment.flags
    parameters: dict[str, Any] = {}
    if "--task.runs" in flags:
        parameters["runs"] = int(flags[flags.index("--task.runs") + 1])
    sr = arm.name != "none"
    config = preset(experiment.task, arm.preset, seed=seed, **parameters)
    config = config.changed({} if sr else {"credit": NoCredit()}, steps=experiment.steps)
    path = experiment.run_path(root, arm, seed)
    write_run(path, config, climbs=sr)
    for point in trace_points(experiment.steps, min(experiment.traces, most_traces)):
        trace = fake_trace(point, list(events), config.task.max_episode_steps, experiment.credited)
        for suffix in ("", "-exploring", "-scripted"):
            trace.save(path / "traces" / f"{point}{suffix}.npz")
    return path


def write_run(path: Path, config: Config, *, climbs: bool, halfway: float = 0.5) -> None:
    """The files of a finished run, without traces.

    Args:
      path: the run directory.
      config: its settings.
      climbs: whether it goes from 0 to 1, or stays at 0.1.
      halfway: the share of its steps after which it is at a half; later for later seeds.
    """
    rng = np.random.default_rng(config.seed)
    events = find_task(config.task_name).events
    # Nobody looks at these runs in TensorBoard, and its files take half of the time.
    unwatched = mock.patch("synthetic_returns.training.metrics.TensorBoardLogger")
    with Run.create(path, config.to_dict(), ["train"]) as run:
        with unwatched, run.metrics(None) as metrics:
            for row in range(1, ROWS + 1):
                behind = row - ROWS * halfway - 2 * config.seed
                share = 1 / (1 + np.exp(-0.6 * behind)) if climbs else 0.1
                values = _values(events, config.task.max_episode_steps, share)
                noise = {name: x * (1 + 0.01 * rng.normal()) for name, x in values.items()}
                if "success" in noise:
                    noise["success"] = min(1.0, noise["success"])
                clock = {"wall_s": 2.0 * row, "steps_per_s": config.steps / ROWS / 2.0}
                metrics.write(config.steps * row // ROWS, noise | clock)
        final = _values(events, config.task.max_episode_steps, 1.0 if climbs else 0.1)
        returns = {"return_mean": final.pop("episode_return"), "return_low": 0.0}
        run.write_summary(
            {
                "env_steps": config.steps,
                "wall_s": 2.0 * ROWS,
                "peak_memory_mb": 500.0 + config.seed,
                "eval": {"episodes": 200, **returns, "return_high": 20.0, **final},
            }
        )


def fake_trace(step: int, events: list[str], steps: int, credited: str) -> Trace:
    """c is 1 where the credited event happens, and 0.1 or -0.1 elsewhere."""
    happened = {name: np.zeros(steps + 1) for name in events}
    happened[credited][7::7] = 1
    if credited != "catch":
        happened[credited][8:] = 0
    c = np.where(happened[credited] > 0, 1.0, 0.1 * (-1.0) ** np.arange(steps + 1))
    leaving = np.append(c[:-1] * 0, np.nan)
    terms = {"c": Term(c, "credit c"), "g": Term(leaving, "gate", "gate", "leaving")}
    explanation = Explanation(terms, "c")
    return Trace(step, np.zeros((steps + 1, 2)), np.zeros(steps + 1), explanation, happened)


def _values(events, steps: int, share: float) -> dict[str, float]:
    values = dict.fromkeys(events, share) | {"episode_return": 20 * share}
    return (
        values
        | {"episode_steps": float(steps)}
        | {k: 20 * share for k in ("catch", "apple") if k in events}
    )
