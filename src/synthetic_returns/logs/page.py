"""The page about a log: what was found, how far it can be trusted, what earns, and episodes."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from synthetic_returns.credit.data.episode import Episode
from synthetic_returns.logs.kinds import Kind, earning_kinds
from synthetic_returns.recorded.credit import Credit
from synthetic_returns.recorded.score import Score
from synthetic_returns.report.example_episode import episode_figure
from synthetic_returns.report.styles import STYLES
from synthetic_returns.viewer.frames import frame_sheet, frames_of_observations
from synthetic_returns.viewer.main_line import common_limits
from synthetic_returns.viewer.markup import Markup, tag
from synthetic_returns.viewer.page import make_page, write_page
from synthetic_returns.viewer.recording import Recording

__all__ = ["Explained", "found", "write_explanation"]

FOUND = 0.05  # of the variance of returns; less than this on new episodes may be luck
TELLING = 3  # numbers of a vector that are named


@dataclasses.dataclass(frozen=True, eq=False)
class Explained:
    """What there is to say about a log.

    Attributes:
      settings: of the explanation.
      credit: fitted.
      score: on episodes that were not fitted.
      states: that were arrived in, in some of them.
      paid: the credit of arriving in each.
      episodes: to be shown, the best first.
    """

    settings: dict[str, Any]
    credit: Credit
    score: Score
    states: np.ndarray
    paid: np.ndarray
    episodes: Sequence[Episode]


def found(score: Score) -> tuple[bool, str]:
    """Whether credit predicts more than rewards alone, and a plain sentence that says so."""
    gain = score.explained_variance - max(0.0, score.rewards_alone)
    if not np.isfinite(score.explained_variance):
        return False, (
            "Nothing was found: all episodes have the same return, so there is nothing to explain. "
            "Record episodes with good and with bad outcomes."
        )
    if gain < max(FOUND, 4 / len(score)):  # luck alone correlates by 1 / sqrt(n), or twice that
        return False, (
            f"Nothing was found: on {len(score):,} held-out episodes, the credit does not predict "
            "the outcome. Either no observation shows what earned it, or there are too few. "
            "Do not use these rewards."
        )
    calibrated = "" if 0.7 <= score.slope <= 1.4 else (
        f" But the predictions are too {'large' if score.slope < 1 else 'small'}: returns differ "
        f"by {score.slope:.2f} for each 1 predicted."
    )  # fmt: skip
    return True, (
        f"One step before the end, the credit predicts {score.explained_variance:.0%} of the "
        f"variance of returns on {len(score):,} held-out episodes; true rewards alone predict "
        f"{max(0.0, score.rewards_alone):.0%}.{calibrated}"
    )


def write_explanation(path: Path, explained: Explained) -> Path:
    """Writes the page."""
    good, sentence = found(explained.score)
    data = map(Path, explained.settings["data"])  # an id of Minari's is no path
    names = ", ".join(one.name if one.is_absolute() else str(one) for one in data)
    title = f"What earned the outcome: {names}"
    facts = {
        "method": explained.credit.method.name,
        "updates": f"{explained.settings['updates']:,}",
        "episodes scored": f"{len(explained.score):,}",
    }
    card = tag(
        "div",
        tag("p", f"{explained.score.explained_variance:.0%}", class_="figure"),
        tag("p", "of the variance of returns predicted"),
        tag("p", tag("b", "found" if good else "nothing found"), class_="verdict"),
        class_="card good" if good else "card",
    )
    parts = {
        "How far it can be trusted": [tag("div", card, class_="cards"), tag("p", sentence),
                                      _calibration(explained.score)],
        "What earns": _kinds(explained),
        "Episodes": _episodes(explained),
    }  # fmt: skip
    body = tag(
        "div",
        tag("header", tag("h1", title), tag("dl", [
            tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items()
        ], class_="facts")),
        tag("main", tag("section", [[tag("h3", name), x] for name, x in parts.items()])),
    )  # fmt: skip
    return write_page(path, make_page(title, body, styles=STYLES))


def _calibration(score: Score) -> Markup:
    rows = [
        (f"{predicted:.3g}", f"{came:.3g}", f"{count:,}")
        for predicted, came, count in score.calibration()
    ]
    note = "Held-out episodes, grouped by the return predicted one step before the end."
    return tag(
        "div",
        _table(("mean prediction", "mean return", "episodes"), rows),
        tag("p", note, class_="note"),
    )


def _kinds(explained: Explained) -> Markup:
    if len(explained.states) < 2:
        return tag("p", "Episodes of one step have nothing to redistribute.", class_="note")
    kinds = earning_kinds(explained.states, explained.paid)
    rows = [
        (_state(kind, explained.states), f"{kind.credit:+.3g}", f"{kind.spread:.2g}",
         f"{kind.count:,} of {len(explained.paid):,}")
        for kind in kinds
    ]  # fmt: skip
    note = (
        "Kinds of states, from those that earn most to those that cost most. Equal states form one "
        "kind; if all states differ, the steps with the highest and the lowest credit are grouped."
    )
    return tag(
        "div",
        _table(("state", "credit", "spread", "steps"), rows),
        tag("p", note, class_="note"),
    )


def _state(kind: Kind, states: np.ndarray) -> Markup | str:
    """A state as a picture, or the numbers in which it differs most from others."""
    state = np.asarray(kind.state)
    if state.ndim >= 2:
        frames = frames_of_observations(state[None])
        if frames is not None:
            return tag("span", tag("img", src=frame_sheet(frames)["source"], alt="a state"),
                       class_="state")  # fmt: skip
    if state.ndim == 0:
        return f"{state:g}"
    spread = states.std(axis=0)
    far = (state - states.mean(axis=0)) / np.where(spread > 0, spread, 1)
    telling = np.argsort(-np.abs(far))[:TELLING]
    return ", ".join(f"x[{i}] = {state[i]:.3g} ({far[i]:+.1f} sd)" for i in telling)


def _episodes(explained: Explained) -> Markup:
    if explained.credit.view.stride != 1:
        return tag("div")
    recordings = [
        Recording.from_episode(episode, explained.credit.explain(episode))
        for episode in explained.episodes
    ]
    limits = common_limits(recordings)
    figures = [
        episode_figure(
            one, f"An episode of {len(one) - 1:,} steps, return {one.total:.3g}.", limits
        )
        for one in recordings
    ]
    return tag("div", tag("p", "All episodes share one scale.", class_="note"), figures)


def _table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> Markup:
    head = tag("thead", tag("tr", [tag("th", name, scope="col") for name in headings]))
    body = tag("tbody", [tag("tr", [tag("td", cell) for cell in row]) for row in rows])
    return tag("div", tag("table", head, body), class_="scroll")
