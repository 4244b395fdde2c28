"""A recorded episode: what there is to see of it, wherever it was played."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from synthetic_returns.credit.data.episode import Episode
from synthetic_returns.credit.explanation import KINDS, Explanation, Term
from synthetic_returns.envs.spec import EventMark, TaskSpec
from synthetic_returns.training.traces import Trace

__all__ = ["Recording"]


@dataclasses.dataclass(frozen=True)
class Recording:
    """One episode of n steps: n + 1 states, from the first to the terminal one.

    It works for any agent: rewards are enough, and everything else is optional.

    Attributes:
      reward: the reward of arriving in each state; 0 for the first.
      terms: what a credit method says about each state, by name, in the order in which it is shown.
        A plain array is a line that has the name as its label. Of a term about leaving, the entry
        of the terminal state is NaN.
      credit: which of them is the credit itself; by default the first.
      frames: uint8 pictures of the states, ``[n + 1, H, W, 3]``.
      events: what happened on arriving, by name; zero where it did not.
      event_marks: how events are marked; those left out get a mark that is free.
      phases: names of the parts of an episode and the steps at which they begin, in order.
      place: which of a few states each is, for tasks that can show them all; see ``StateBars``.
      reference: the mean credit of random play at each step; pictures show how far the credit
        differs from it.
      truth: what arriving in each state truly contributes to later rewards, where the task knows.
      player: who played, for people, such as "the agent" or "random play".
    """

    reward: np.ndarray
    terms: Mapping[str, Term | np.ndarray] = dataclasses.field(default_factory=dict)
    credit: str | None = None
    frames: np.ndarray | None = None
    events: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    event_marks: Mapping[str, EventMark] = dataclasses.field(default_factory=dict)
    phases: tuple[tuple[str, int], ...] = ()
    place: np.ndarray | None = None
    reference: np.ndarray | None = None
    truth: np.ndarray | None = None
    player: str = ""

    def __post_init__(self) -> None:
        if np.ndim(self.reward) != 1 or not len(self.reward):
            raise ValueError(
                f"reward has shape {np.shape(self.reward)}; it must be one number for each state "
                "of the episode, the first included."
            )
        states = len(self.reward)
        series = {name: getattr(self, name) for name in ("place", "reference", "truth")} | {
            f"events[{name!r}]": x for name, x in self.events.items()
        }
        for name, values in series.items():
            if values is not None and np.shape(values) != (states,):
                raise ValueError(
                    f"{name} has shape {np.shape(values)} and reward has ({states},); both need "
                    "one entry for each state, from the first to the last."
                )
        if self.credit is None:
            object.__setattr__(self, "credit", next(iter(self.terms), None))
        for name, term in self.explanation.terms.items():
            _check_term(name, term, states)
        if self.frames is not None:
            self._check_frames(states)

    def _check_frames(self, states: int) -> None:
        frames = np.asarray(self.frames)
        if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[3] != 3:
            raise ValueError(
                f"frames are {frames.dtype}{list(frames.shape)}; they must be uint8 [n, H, W, 3]: "
                "see `frames_of_observations` for pictures of observations."
            )
        if len(frames) != states:
            raise ValueError(
                f"there are {len(frames)} frames and {states} states; give one for each state, "
                "the last one included."
            )

    def __len__(self) -> int:
        """The number of states."""
        return len(self.reward)

    def _repr_html_(self) -> str:
        """The credit over the episode and what happened in it, in a notebook."""
        from synthetic_returns.viewer.inline import inline_picture  # it draws recordings

        return inline_picture(self)

    @property
    def explanation(self) -> Explanation:
        """The terms, and which of them is the credit."""
        terms = {
            name: x if isinstance(x, Term) else Term(np.asarray(x), name)
            for name, x in self.terms.items()
        }
        return Explanation(terms, self.credit)

    @property
    def total(self) -> float:
        """The return: the sum of the rewards."""
        return float(np.sum(self.reward, dtype=np.float64))

    @classmethod
    def from_trace(cls, trace: Trace, task: TaskSpec | None = None) -> "Recording":
        """What a run recorded while it was training; it has no pictures.

        Args:
          trace: the episode.
          task: knows its phases and how its events are marked.
        """
        return cls(
            reward=trace.reward,
            terms=trace.explanation.terms,
            credit=trace.explanation.credit,
            events=trace.events,
            event_marks=task.event_marks if task else {},
            phases=task.phases if task else (),
            reference=trace.reference,
            truth=trace.truth,
        )

    @classmethod
    def from_episode(
        cls, episode: Episode, explanation: Explanation, *, frames: np.ndarray | None = None
    ) -> "Recording":
        """An episode that a wrapper recorded, with what its ``explain`` says.

        Args:
          episode: one of ``recent_episodes()``.
          explanation: the result of ``explain(episode)``. The terminal state may be left out: it
            earns no credit.
          frames: pictures of the observations, for instance ``frames_of_observations(
            episode.observation)``; without one of the terminal state, that of the state before is
            shown.
        """
        states = len(episode.reward) + 1
        terms = {
            name: _completed(term, states, 0.0 if name == explanation.credit else np.nan)
            for name, term in explanation.terms.items()
        }
        if frames is not None and len(frames) == states - 1:
            frames = np.concatenate([frames, frames[-1:]])
        reward = np.concatenate([[0.0], episode.reward])
        return cls(reward, terms, explanation.credit, frames)


def _check_term(name: str, term: Term, states: int) -> None:
    if term.kind not in KINDS:
        raise ValueError(
            f"terms[{name!r}] is of kind {term.kind!r}; use one of {', '.join(KINDS)}."
        )
    shape = np.shape(term.values)
    rule = {"pairs": f"({states}, {states})", "actions": f"({states}, actions)"}
    fits = {
        "pairs": shape == (states, states),
        "actions": len(shape) == 2 and shape[0] == states and shape[1] > 0,
    }
    if not fits.get(term.kind, shape == (states,)):
        raise ValueError(
            f"terms[{name!r}] has shape {shape} and reward has ({states},); a term of kind "
            f"{term.kind} must have shape {rule.get(term.kind, f'({states},)')}, an entry for each "
            "state from the first to the last."
        )


def _completed(term: Term, states: int, terminal: float) -> Term:
    """One episode's term, with an entry for the terminal state if it has none."""
    values = np.asarray(term.values, np.float64)
    missing = states - len(values)
    if missing == 1:
        of_states = 2 if term.kind == "pairs" else 1
        padding = [(0, 1)] * of_states + [(0, 0)] * (values.ndim - of_states)
        values = np.pad(values, padding, constant_values=terminal)
    return term.with_values(values).cut(len(values))
