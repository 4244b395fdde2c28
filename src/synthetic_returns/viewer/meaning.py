"""What the credit on a page means, in a sentence with the numbers that matter."""

from collections.abc import Callable, Sequence

import numpy as np

from synthetic_returns.viewer.arrival import credit_on_arrival
from synthetic_returns.viewer.event_style import marked_steps
from synthetic_returns.viewer.recording import Recording

__all__ = ["OTHER_STEPS", "credit_in_words", "credit_of_events", "difference_in_words"]

OTHER_STEPS = "any other step"
_KINDS = {
    "actions": "Credit is the advantage of each action: how much better or worse it is than what "
    "the agent usually does in that state, in units of reward.",
    "pairs": "Credit is how much each state contributes to the reward of every later one.",
}


def credit_of_events(recordings: Sequence[Recording]) -> dict[str, float]:
    """The mean credit on the steps of each event, the largest first, and on all other steps.

    The first and the last state are left out: nothing leads to the one, and the other earns
    nothing.
    """
    means = _means(recordings, lambda one: credit_on_arrival(one.explanation, one.reference))
    return dict(sorted(means.items(), key=lambda item: -item[1]))


def _means(
    recordings: Sequence[Recording], series: Callable[[Recording], np.ndarray | None]
) -> dict[str, float]:
    """The mean of one number for each state, on the steps of each event and on all others."""
    found: dict[str, list[float]] = {}
    for recording in recordings:
        values = series(recording)
        if values is None:
            continue
        inner = np.zeros(len(recording), bool)
        inner[1:-1] = np.isfinite(values[1:-1])
        for event, steps in marked_steps(recording.events).items():
            here = np.zeros(len(recording), bool)
            here[steps] = True
            found.setdefault(event, []).extend(values[here & inner])
            inner &= ~here
        found.setdefault(OTHER_STEPS, []).extend(values[inner])
    return {event: float(np.mean(values)) for event, values in found.items() if values}


def difference_in_words(means: dict[str, float]) -> str:
    """How much more the best event earns than the worst, or than any other step.

    It is empty if there is nothing to compare.

    Args:
      means: the mean credit of each event, from ``credit_of_events``.
    """
    compared = _extremes(means)
    if compared is None:
        return ""
    best, worst = compared
    difference = f"{means[best] - means[worst]:.2f}"
    if float(difference) == 0:
        return "no event earns more than another yet"
    return f"{_named(best)} earns {difference} more than {_named(worst)}"


def _extremes(means: dict[str, float]) -> tuple[str, str] | None:
    """The event that earns most, and the one that earns least or, with one event, other steps."""
    events = [event for event in means if event != OTHER_STEPS]
    if not events or len(means) < 2:
        return None
    return events[0], events[-1] if len(events) > 1 else OTHER_STEPS


def credit_in_words(recordings: Sequence[Recording]) -> str:
    """What the credit of these episodes means."""
    explanations = [recording.explanation for recording in recordings]
    credited = [one for one in explanations if one.credit is not None]
    if not credited:
        return "This agent learned without credit."
    kind = credited[0].terms[credited[0].credit].kind  # pyright: ignore[reportArgumentType]
    if kind in _KINDS:
        return _KINDS[kind]
    compared = any(recording.reference is not None for recording in recordings)
    sentence = "Credit is what the agent is paid for arriving in a state, in units of reward"
    sentence += ", relative to random play at the same step" if compared else ""
    means = credit_of_events(recordings)
    if difference := difference_in_words(means):
        each = ", ".join(f"{_signed(mean)} for {_named(event)}" for event, mean in means.items())
        sentence += f": {each}. In these episodes {difference}"
        truth, compared = _means(recordings, lambda one: one.truth), _extremes(means)
        if compared and set(compared) <= set(truth):
            sentence += f"; the true difference is {truth[compared[0]] - truth[compared[1]]:.2f}"
    return f"{sentence}."


def _named(event: str) -> str:
    if event == OTHER_STEPS:
        return event
    return f"{'an' if event[0] in 'aeiou' else 'a'} {event.replace('_', ' ')}"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")
