"""The credit over one episode: what every drawing of it needs, however it is drawn."""

import dataclasses
from collections.abc import Iterable

import numpy as np

from synthetic_returns.viewer.arrival import credit_on_arrival
from synthetic_returns.viewer.event_style import EventStyle, event_styles, marked_steps
from synthetic_returns.viewer.recording import Recording

__all__ = ["MainLine", "common_limits", "main_line"]


@dataclasses.dataclass(frozen=True)
class MainLine:
    """One number for each state of an episode, and what happened in it.

    Attributes:
      label: what the numbers are.
      values: the numbers; 0 where nothing is known.
      marks: the steps at which each event is marked.
      styles: how it is marked.
      spans: name, first step and end of each phase that the episode reached.
    """

    label: str
    values: np.ndarray
    marks: dict[str, list[int]]
    styles: dict[str, EventStyle]
    spans: list[tuple[str, int, int]]

    @property
    def peak(self) -> int:
        """The step with the largest number."""
        return int(np.argmax(self.values))

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest number, with zero between them."""
        low, high = min(0.0, float(self.values.min())), max(0.0, float(self.values.max()))
        return (low, high) if low < high else (0.0, 1.0)


def main_line(recording: Recording) -> MainLine:
    """The credit of an episode, compared with random play if that is known.

    It is the reward if the agent has no credit.
    """
    explanation = recording.explanation
    values, label = credit_on_arrival(explanation, recording.reference), "reward"
    if values is None or explanation.credit is None:
        values = recording.reward
    else:
        label = explanation.terms[explanation.credit].label
        if recording.reference is not None:
            label += ", relative to random play"
    marks = marked_steps(recording.events)
    reached = [(name, start) for name, start in recording.phases if start < len(recording)]
    ends = [*(start for _, start in reached), len(recording)][1:]
    return MainLine(
        label=label,
        values=np.nan_to_num(np.asarray(values, np.float64)),
        marks=marks,
        styles=event_styles(marks, recording.event_marks),
        spans=[(name, start, end) for (name, start), end in zip(reached, ends, strict=True)],
    )


def common_limits(recordings: Iterable[Recording]) -> tuple[float, float]:
    """One scale for several episodes, so that they can be compared."""
    limits = [main_line(recording).limits for recording in recordings]
    return min(low for low, _ in limits), max(high for _, high in limits)
