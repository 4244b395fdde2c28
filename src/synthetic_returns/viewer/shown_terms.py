"""The terms of a recorded episode as the page draws them."""

from typing import Any

import numpy as np

from synthetic_returns.credit.explanation import Term
from synthetic_returns.viewer.arrival import reward_over, values_on_arrival
from synthetic_returns.viewer.recording import Recording

__all__ = ["line_charts", "pooled", "shown_terms"]

CELLS = 160  # on each side of a heat map of pairs: more than can be told apart, and 150 kB


def shown_terms(recording: Recording) -> list[dict[str, Any]]:
    """Every term with its label and its values, at the steps that they are about."""
    return [
        {"name": name, "label": term.title, "kind": term.kind, "values": _values(term)}
        for name, term in recording.explanation.terms.items()
    ]


def line_charts(recording: Recording) -> list[dict[str, Any]]:
    """Which lines share a chart: those about the same rewards, drawn over these, and all others.

    The credit has a chart of its own and is not among them.
    """
    explanation = recording.explanation
    lines = {
        name: term
        for name, term in explanation.terms.items()
        if term.kind == "line" and name != explanation.credit
    }
    predicted: dict[tuple[int, int], list[str]] = {(1, 1): []}  # by the rewards they are about
    others = []
    for name, term in lines.items():
        same = others
        if term.about == "leaving":
            same = predicted.setdefault((term.steps, term.stride), [])
        same.append(name)
    charts: list[dict[str, Any]] = [
        {"title": "reward", "bars": recording.reward, "lines": predicted.pop((1, 1))}
    ]
    charts += [
        {
            "title": f"reward of the next {steps} steps",
            "bars": reward_over(recording.reward, steps, stride),
            "lines": names,
        }
        for (steps, stride), names in predicted.items()
    ]
    if others:
        charts.append({"title": "of each state", "bars": None, "lines": others})
    return charts


def pooled(pairs: np.ndarray, cells: int = CELLS) -> np.ndarray:
    """A matrix with at most ``cells`` cells on a side, each the entry that stands out most."""
    states = len(pairs)
    if states <= cells:
        return pairs
    starts = np.arange(cells) * states // cells
    low, high = (
        reduce.reduceat(reduce.reduceat(pairs, starts, axis=0), starts, axis=1)
        for reduce in (np.fmin, np.fmax)
    )
    return np.where(np.abs(low) > np.abs(high), low, high)


def _values(term: Term) -> np.ndarray:
    values = values_on_arrival(term)
    return pooled(values) if term.kind == "pairs" else values
