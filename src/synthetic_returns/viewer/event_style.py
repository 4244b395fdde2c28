"""How events are marked, alike in the viewer, in pictures and in animations."""

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np

__all__ = ["EventStyle", "event_styles", "marked_steps"]


@dataclasses.dataclass(frozen=True)
class EventStyle:
    """A mark: its shape, and its colour on a light and on a dark ground."""

    shape: str
    light: str
    dark: str


_GREEN, _RED, _PURPLE = ("#1b7f3b", "#4cc97b"), ("#c0271a", "#ff7a6b"), ("#7a2fb0", "#c792f0")
_GOLD, _BLUE, _GREY = ("#946300", "#ffc83d"), ("#1c62b8", "#7db4ff"), ("#5c5c5c", "#b5b5b5")
_KNOWN = {
    "key": EventStyle("diamond", *_GOLD),
    "yellow_key": EventStyle("diamond", *_GOLD),
    "red_key": EventStyle("diamond", *_RED),
    "apple": EventStyle("circle", *_GREEN),
    "door": EventStyle("square", *_PURPLE),
    "catch": EventStyle("triangle", *_GREEN),
    "miss": EventStyle("cross", *_RED),
    "trigger": EventStyle("diamond", *_GOLD),
    "gate": EventStyle("square", *_BLUE),
    "umbrella": EventStyle("triangle", *_BLUE),
    "success": EventStyle("star", *_PURPLE),
}
# For events that this package does not know: each its own combination.
_OTHERS = tuple(
    EventStyle(shape, *colours)
    for shape in ("diamond", "circle", "square", "triangle")
    for colours in (_BLUE, _GOLD, _GREEN, _PURPLE, _GREY)
)


def event_styles(names: Iterable[str]) -> dict[str, EventStyle]:
    """The mark of each event; unknown ones get what is left, in turn."""
    names = list(names)
    strangers = [name for name in names if name not in _KNOWN]
    return {
        name: _KNOWN[name] if name in _KNOWN else _OTHERS[strangers.index(name) % len(_OTHERS)]
        for name in names
    }


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
