"""How events are marked, alike in the viewer, in pictures and in animations."""

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np

from synthetic_returns.envs.spec import EventMark

__all__ = ["EventStyle", "event_styles", "marked_steps"]


@dataclasses.dataclass(frozen=True)
class EventStyle:
    """A mark: its shape, and its colour on a light and on a dark ground."""

    shape: str
    light: str
    dark: str


# On a light and on a dark ground.
_COLOURS = {
    "green": ("#1b7f3b", "#4cc97b"),
    "red": ("#c0271a", "#ff7a6b"),
    "purple": ("#7a2fb0", "#c792f0"),
    "gold": ("#946300", "#ffc83d"),
    "blue": ("#1c62b8", "#7db4ff"),
    "grey": ("#5c5c5c", "#b5b5b5"),
}
_SUCCESS = {"success": EventMark("star", "purple")}  # every task has it
# For events that have no mark: each its own combination.
_OTHERS = tuple(
    EventMark(shape, colour)
    for shape in ("diamond", "circle", "square", "triangle")
    for colour in ("blue", "gold", "green", "purple", "grey")
)


def event_styles(
    names: Iterable[str], marks: Mapping[str, EventMark] | None = None
) -> dict[str, EventStyle]:
    """The style of each event; those without a mark get what is left, in turn."""
    names, marks = list(names), {**_SUCCESS, **(marks or {})}
    free = [mark for mark in _OTHERS if mark not in marks.values()] or _OTHERS
    strangers = [name for name in names if name not in marks]
    chosen = {name: free[index % len(free)] for index, name in enumerate(strangers)}
    return {name: _style(marks.get(name) or chosen[name]) for name in names}


def _style(mark: EventMark) -> EventStyle:
    return EventStyle(mark.shape, *_COLOURS[mark.colour])


def marked_steps(events: Mapping[str, np.ndarray]) -> dict[str, list[int]]:
    """The steps on which each event is marked, in the order of their first time.

    Events that never happen are left out. Success is told by the event that it comes with, and
    marked only where it comes alone.
    """
    happened = {name: np.asarray(x) != 0 for name, x in events.items()}
    others = [x for name, x in happened.items() if name != "success"]
    if "success" in happened and others:
        happened["success"] = happened["success"] & ~np.any(others, axis=0)
    steps = {name: np.flatnonzero(x).tolist() for name, x in happened.items() if x.any()}
    return dict(sorted(steps.items(), key=lambda item: item[1][0]))
