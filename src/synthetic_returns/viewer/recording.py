"""A recorded episode: what there is to see of it, wherever it was played."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from synthetic_returns.credit.episodes import Episode
from synthetic_returns.credit.old_explanation import Explanation
from synthetic_returns.training.traces import Trace

__all__ = ["Recording"]


@dataclasses.dataclass(frozen=True)
class Recording:
    """One episode of n steps: n + 1 states, each entry about *arriving* in its state.

    Any agent can be looked at through it: the reward and the contributions are enough, everything
    else is shown if it is there.

    Attributes:
      reward: the reward of arriving in each state; 0 for the first.
      contribution: the synthetic return of each state; NaN where it is not known.
      frames: uint8 pictures of the states, ``[n + 1, H, W, 3]``.
      gate: how far the gate was open for each reward, as the state before it said; NaN for the
        first, as in the next two.
      baseline: what the state before said about each reward on its own.
      predicted: what it said together with the contributions of the states before it.
      events: what happened on arriving, by name; zero where it did not.
      phases: names of the parts of an episode and the steps at which they begin, in order.
      place: which of a few states each is, for tasks that can show them all; see ``StateBars``.
    """

    reward: np.ndarray
    contribution: np.ndarray
    frames: np.ndarray | None = None
    gate: np.ndarray | None = None
    baseline: np.ndarray | None = None
    predicted: np.ndarray | None = None
    events: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    phases: tuple[tuple[str, int], ...] = ()
    place: np.ndarray | None = None

    def __post_init__(self) -> None:
        if np.ndim(self.reward) != 1 or not len(self.reward):
            raise ValueError(
                f"reward has shape {np.shape(self.reward)}; it must be one number for each state "
                "of the episode, the first included."
            )
        states = len(self.reward)
        optional = {name: getattr(self, name) for name in ("gate", "baseline", "predicted")}
        series = {"contribution": self.contribution, "place": self.place} | optional
        series |= {f"events[{name!r}]": x for name, x in self.events.items()}
        for name, values in series.items():
            if values is not None and np.shape(values) != (states,):
                raise ValueError(
                    f"{name} has shape {np.shape(values)} and reward has ({states},); both need "
                    "one entry for each state, from the first to the last."
                )
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

    @property
    def total(self) -> float:
        """The return: the sum of the rewards."""
        return float(np.sum(self.reward, dtype=np.float64))

    @classmethod
    def from_trace(cls, trace: Trace, phases: tuple[tuple[str, int], ...] = ()) -> "Recording":
        """What a run recorded while it was training; it has no pictures."""
        return cls(
            reward=trace.reward,
            contribution=trace.c,
            gate=on_arrival(trace.g),
            baseline=on_arrival(trace.b),
            events=trace.events,
            phases=phases,
        )

    @classmethod
    def from_episode(
        cls, episode: Episode, explanation: Explanation, *, frames: np.ndarray | None = None
    ) -> "Recording":
        """An episode that a wrapper recorded, with what its ``explain`` says.

        The state after the last step is not kept: it earns no synthetic return.

        Args:
          episode: one of ``recent_episodes()``.
          explanation: what ``explain(episode)`` says.
          frames: pictures of the observations, for instance ``frames_of_observations(
            episode.observation)``; the one of the last state is that of the state before.
        """
        g, b, r_hat = (
            on_arrival(np.append(x, np.nan))
            for x in (explanation.g, explanation.b, explanation.r_hat)
        )
        return cls(
            reward=np.concatenate([[0.0], episode.reward]),
            contribution=np.append(explanation.c, 0.0),
            frames=None if frames is None else np.concatenate([frames, frames[-1:]]),
            gate=g,
            baseline=b,
            predicted=r_hat,
        )


def on_arrival(about_leaving: np.ndarray) -> np.ndarray:
    """Moves what each state says about its next reward to where that reward arrives."""
    return np.concatenate([[np.nan], np.asarray(about_leaving, np.float64)[:-1]])
