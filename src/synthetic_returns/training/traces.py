"""Traces: example episodes with what the credit method says about every step of them.

At evenly spaced points of training, three episodes are written into a run: the best of eight that
the agent plays (``traces/<step>.npz``), one of middling outcome that it plays with random actions
in between (``traces/<step>-exploring.npz``), so that there is something that it does wrong, and
one of the scripted policy (``traces/<step>-scripted.npz``), which passes the decisive states even
while the agent does not find them yet. Each comes with the mean credit of random play at the same
steps. Nothing random is shared with training: recording changes no result.
"""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np

from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.utils.archives import read_arrays
from synthetic_returns.utils.files import RunError
from synthetic_returns.utils.settings import from_plain

__all__ = ["SUFFIXES", "Player", "Trace", "drift", "read_traces", "trace_points"]

Player = Literal["agent", "exploring", "scripted"]
SUFFIXES: dict[Player, str] = {"agent": "", "exploring": "-exploring", "scripted": "-scripted"}
_STEP = re.compile("0|[1-9][0-9]{0,17}")


@dataclasses.dataclass(frozen=True)
class Trace:
    """One episode of n steps: n + 1 states, from FIRST to LAST.

    Attributes:
      step: environment steps of training before it.
      observation: what the agent saw.
      reward: the reward of arriving in each state.
      explanation: what the credit method said about each state, in numpy arrays; what is about
        leaving the last one is NaN.
      events: what happened in each step, by name.
      reference: the mean credit of random play at each step, which pictures compare the credit
        with; None if it is not known.
      truth: what arriving in each state truly contributes to later rewards; None if the task does
        not know.
    """

    step: int
    observation: np.ndarray
    reward: np.ndarray
    explanation: Explanation
    events: dict[str, np.ndarray]
    reference: np.ndarray | None = None
    truth: np.ndarray | None = None

    def save(self, path: Path) -> None:
        """Writes one ``.npz`` file."""
        terms = self.explanation.terms
        arrays = {"step": self.step, "observation": self.observation, "reward": self.reward}
        arrays |= {f"events/{name}": x for name, x in self.events.items()}
        arrays |= {f"terms/{name}": term.values for name, term in terms.items()}
        known = {"reference": self.reference, "truth": self.truth}
        arrays |= {name: x for name, x in known.items() if x is not None}
        header = {
            "credit": self.explanation.credit,
            "terms": [{"name": name} | _words(term) for name, term in terms.items()],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, allow_pickle=False, header=json.dumps(header), **arrays)

    @classmethod
    def load(cls, path: Path) -> "Trace":
        """Reads what ``save`` wrote."""
        remedy = "delete the file; only this picture of training is lost"
        arrays = read_arrays(path, remedy)
        try:
            return cls._of_arrays(arrays)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise RunError(f"{path} is not a trace ({error!r}): {remedy}") from error

    @classmethod
    def _of_arrays(cls, arrays: dict[str, np.ndarray]) -> "Trace":
        trace = cls(
            step=int(arrays["step"]),
            observation=arrays["observation"],
            reward=arrays["reward"],
            explanation=_read_explanation(arrays),
            events={
                name.removeprefix("events/"): x
                for name, x in arrays.items()
                if name.startswith("events/")
            },
            reference=arrays.get("reference"),
            truth=arrays.get("truth"),
        )
        _check_states(trace)
        return trace


def _check_states(trace: Trace) -> None:
    """Refuses arrays that are not numbers, or not one entry for each state."""
    states = trace.reward.shape
    terms = trace.explanation.terms
    entries = {"observation": trace.observation, "reward": trace.reward, **trace.events}
    for name, x in (*entries.items(), *((name, term.values) for name, term in terms.items())):
        if x.dtype.kind not in "biuf" or len(states) != 1 or x.shape[:1] != states or not x.size:
            raise ValueError(f"{name} is {x.dtype}{list(x.shape)}, the reward {list(states)}")
    for name, term in terms.items():
        rank = {"line": 1, "gate": 1, "pairs": 2, "actions": 2}[term.kind]
        if term.values.ndim != rank or term.values.dtype.kind != "f":
            raise ValueError(f"{name} is a {term.kind} of shape {list(term.values.shape)}")
    if any(x.ndim != 1 for x in trace.events.values()):
        raise ValueError("an event has more than one number for each state")
    for name, x in {"reference": trace.reference, "truth": trace.truth}.items():
        if x is not None and (x.dtype.kind != "f" or x.shape != states):
            raise ValueError(f"{name} is {x.dtype}{list(x.shape)}, the reward {list(states)}")


def _words(term: Term) -> dict[str, Any]:
    """Everything of a term but its values."""
    return {name: value for name, value in vars(term).items() if name != "values"}


def _read_explanation(arrays: dict[str, np.ndarray]) -> Explanation:
    if "header" not in arrays:
        return _read_old_explanation(arrays)
    header = json.loads(str(arrays["header"]))
    terms = {
        words["name"]: from_plain(Term, words | {"values": arrays[f"terms/{words['name']}"]})
        for words in header["terms"]
    }
    return Explanation(terms, header["credit"])


def _read_old_explanation(arrays: dict[str, np.ndarray]) -> Explanation:
    """Of version 0.1, which wrote bare arrays: the credit first, and NaN without any."""
    known = {
        name: x
        for name, x in arrays.items()
        if name not in ("step", "observation", "reward")
        and not name.startswith("events/")
        and not np.isnan(x).all()
    }
    terms = {
        name: Term(x, name, "line", "leaving" if np.isnan(x[-1]) else "arriving")
        for name, x in known.items()
    }
    return Explanation(terms, next(iter(terms), None))


def trace_points(steps: int, traces: int) -> list[int]:
    """The steps of training after which traces are recorded; the last one is the end."""
    return [steps * number // traces for number in range(1, traces + 1)]


def read_traces(
    run: str | Path, player: Player = "agent", *, newest: int | None = None
) -> list[Trace]:
    """The traces of a run, in the order of training.

    Args:
      run: the run directory.
      player: who plays: the agent, the agent while it explores, or the scripted policy.
      newest: how many of the last ones to read; None reads all.
    """
    suffix = SUFFIXES[player]
    found = Path(run, "traces").glob("*.npz")
    steps = sorted(int(path.stem) for path in found if _STEP.fullmatch(path.stem))
    paths = [Path(run, "traces", f"{step}{suffix}.npz") for step in steps]
    existing = [path for path in paths if path.exists()]
    chosen = existing if newest is None else existing[-newest:]
    return [Trace.load(path) for path in chosen]


def drift(before: Trace, after: Trace) -> float:
    """How much the credit changed between two traces of the same states, relative to its size.

    Both are root mean squares; NaN if the states differ or there is no credit or it is zero.
    """
    explained = (before.explanation, after.explanation)
    if any(explanation.credit is None for explanation in explained):
        return float("nan")
    if not np.array_equal(before.observation, after.observation):
        return float("nan")
    old, new = (np.asarray(explanation.paid, np.float64) for explanation in explained)
    size, change = (float(np.sqrt(np.nanmean(np.square(x)))) for x in (new, new - old))
    return change / size if size > 1e-12 else float("nan")
