"""A picture strip: the frames of one episode, with what happened under each of them."""

import collections
import math
import pathlib
from typing import Any

import jax
import numpy as np

from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.pictures import enlarge
from synthetic_returns.envs.registry import find_task
from synthetic_returns.types import TimeStep

__all__ = ["draw_strip"]

_WIDTH = 12.8  # inches
_FRAMES = 32


def draw_strip(
    name: str, path: str | pathlib.Path, *, seed: int = 0, frames: int = _FRAMES, **parameters: Any
) -> None:
    """Writes one episode of a task under its scripted policy as a PNG.

    An episode longer than the strip is shown by its first and last frames and, from between, by
    frames on which something happened, rare things first.

    Args:
      name: the task.
      path: the file to write.
      seed: the episode.
      frames: the largest number of frames.
      **parameters: parameters of the task.
    """
    # Drawing is slow to import and only needed here.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    task = find_task(name)
    env = task.make(**parameters)
    if not env.has_script:
        raise ValueError(
            f"{name} has no scripted policy to draw: {task.unscripted}. `view` shows the episodes "
            "of a trained agent."
        )
    episode = _play(env, seed)
    pictures = [enlarge(env.render(state), width=220) for state, _ in episode]
    happened = [_tell(timestep) for _, timestep in episode]
    chosen = _choose(happened, frames)

    height, width = pictures[0].shape[:2]
    columns = 8 if width < 3 * height else 4
    rows = math.ceil(len(chosen) / columns)
    side = _WIDTH / columns
    figure = Figure(figsize=(_WIDTH, rows * (side * height / width + 0.45) + 0.5), dpi=100)
    FigureCanvasAgg(figure)
    figure.suptitle(f"{name}: {task.description}", fontsize=10)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes:
        axis.set_axis_off()
    for axis, index in zip(axes, chosen, strict=False):
        axis.imshow(pictures[index])
        axis.annotate(
            f"t = {index}\n{happened[index]}",
            (0.5, 0),
            xycoords="axes fraction",
            xytext=(0, -4),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=7,
        )
    figure.tight_layout()
    figure.savefig(path)


def _play(env: Environment, seed: int) -> list[tuple[Any, TimeStep]]:
    """States and steps of one episode under the scripted policy."""
    act = jax.jit(env.optimal_action)
    step = jax.jit(env.step)
    _, (state, timestep) = env.start(jax.random.key(seed))
    episode = [(state, timestep)]
    while not timestep.last:
        state, timestep = step(state, act(state))
        episode.append((state, timestep))
    return episode


def _tell(timestep: TimeStep) -> str:
    """The events of a step and its reward."""
    events = [name.replace("_", " ") for name, happened in timestep.events.items() if happened]
    # Success is told by the event that it comes with.
    events = [event for event in events if event != "success"] or events
    return ", ".join([*events, *([f"{float(timestep.reward):+g}"] if timestep.reward else [])])


def _choose(happened: list[str], count: int) -> list[int]:
    """The indices of at most ``count`` frames, in order."""
    total, end = len(happened), count // 4
    if total <= count:
        return list(range(total))
    often = collections.Counter(happened)
    middle = range(end, total - end)
    rare = [index for index in middle if happened[index] and often[happened[index]] <= 2]
    common = [index for index in middle if happened[index] and often[happened[index]] > 2]
    room = min(count - 2 * end - len(rare), len(common))
    shown = {common[round(place)] for place in np.linspace(0, len(common) - 1, max(room, 0))}
    return sorted({*range(end), *rare[: count - 2 * end], *shown, *range(total - end, total)})
