"""The episode viewer: recorded episodes as one page to play, step and scrub through."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from synthetic_returns.viewer.event_style import event_styles, marked_steps
from synthetic_returns.viewer.frames import frame_sheet
from synthetic_returns.viewer.main_line import main_line
from synthetic_returns.viewer.meaning import credit_in_words
from synthetic_returns.viewer.page import make_page, read_resource, write_page
from synthetic_returns.viewer.recording import Recording
from synthetic_returns.viewer.shown_terms import line_charts, shown_terms
from synthetic_returns.viewer.state_bars import StateBars

__all__ = ["write_view"]

STYLES = ("viewer/theme.css", "viewer/view.css")
SCRIPTS = (
    "viewer/view_chart.js",
    "viewer/view_bars.js",
    "viewer/view_heat.js",
    "viewer/view_scales.js",
    "viewer/view_traces.js",
    "viewer/view_player.js",
)


def write_view(
    path: str | Path,
    recordings: Sequence[Recording],
    *,
    title: str = "Episodes",
    facts: Mapping[str, str] | None = None,
    meanings: Mapping[str, str] | None = None,
    bars: StateBars | None = None,
) -> Path:
    """Writes one self-contained HTML page.

    Args:
      path: the file; an older page is replaced, any other file is not.
      recordings: the episodes, in the order in which they are listed.
      title: of the page.
      facts: what is shown about them above, such as the task and the step of training.
      meanings: what the events mean, by name.
      bars: the credit of every state, for tasks with few of them.
    """
    if not recordings:
        raise ValueError("there is no episode to show; record at least one.")
    names = list(dict.fromkeys(name for episode in recordings for name in episode.events))
    marks = {name: mark for episode in recordings for name, mark in episode.event_marks.items()}
    meanings = meanings or {}
    data = {
        "title": title,
        "meaning": credit_in_words(recordings),
        "facts": list((facts or {}).items()),
        "events": {
            name: {
                "label": name.replace("_", " "),
                "meaning": meanings.get(name, ""),
                **vars(style),
            }
            for name, style in event_styles(names, marks).items()
        },
        "episodes": [_episode(recording) for recording in recordings],
        "bars": vars(bars) if bars else None,
    }
    page = make_page(
        title, read_resource("viewer/view.html"), styles=STYLES, scripts=SCRIPTS, data=data
    )
    return write_page(Path(path), page)


def _episode(recording: Recording) -> dict[str, Any]:
    line = main_line(recording) if recording.credit else None
    return {
        "player": recording.player,
        "total": recording.total,
        "reward": recording.reward,
        "terms": shown_terms(recording),
        "credit": recording.credit,
        "strip": line and line.values,
        "label": line and line.label,
        "charts": line_charts(recording),
        "events": marked_steps(recording.events),
        "phases": recording.phases,
        "place": recording.place,
        "frames": None if recording.frames is None else frame_sheet(recording.frames),
    }
