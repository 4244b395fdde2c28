"""What recorded episodes look like, learned from the episodes themselves."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from synthetic_returns.credit.data.episode import Episode, Segment
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.utils.buckets import bucket
from synthetic_returns.utils.settings import from_plain

__all__ = ["Format", "read_format", "whole_segment"]

LARGEST = 10.0  # what numbers of vectors are clipped to, in standard deviations
FEW_KINDS = 4096  # a single whole number below this is the name of a state, not an amount


@dataclasses.dataclass(frozen=True)
class Format:
    """Shapes, types and scales of recorded episodes. No bounds are known, so data stand in.

    Attributes:
      shape: of one observation.
      dtype: how observations are kept: bytes as they are, anything else as float32.
      max_episode_steps: of the longest episode, rounded up to a power of two.
      mean: of each number of a vector; vectors are standardised.
      scale: what observations are multiplied with after that.
      kinds: for observations that are a single whole number, how many there are; else 0.
      num_actions: for actions that are a single whole number, how many there are.
      action_shape: of one action; None where actions are not known.
      has_policy: whether log-probabilities and values are known.
    """

    shape: tuple[int, ...]
    dtype: str
    max_episode_steps: int
    mean: tuple[float, ...] | None = None
    scale: tuple[float, ...] = (1.0,)
    kinds: int = 0
    num_actions: int | None = None
    action_shape: tuple[int, ...] | None = None
    has_policy: bool = False

    @classmethod
    def from_saved(cls, data: Mapping[str, Any]) -> "Format":
        """The format of this plain data; earlier versions called the longest episode otherwise."""
        names = {"longest": "max_episode_steps"}
        return from_plain(cls, {names.get(name, name): x for name, x in data.items()})

    def spec(
        self, view: View, max_episode_steps: int, encoder: Callable[[Any], Any] | None
    ) -> EpisodeSpec:
        """What a method is told about these episodes."""
        return EpisodeSpec.seen(
            view,
            self.shape,
            np.dtype(self.dtype),
            max_episode_steps,
            num_actions=self.num_actions,
            action_shape=self.action_shape or (),
            action_dtype=None if self.action_shape is None else self._action_dtype,
            has_policy=self.has_policy,
            kinds=self.kinds,
            channels_first=len(self.shape) == 3 and self.shape[0] < self.shape[-1],
            encoder=encoder,
        )

    def convert(self, episode: Episode, where: str) -> Episode:
        """An episode with observations and actions in this format; refuses one of another kind."""
        observation = episode.observation
        if observation.shape[1:] != self.shape:
            raise ValueError(
                f"the observations of {where} have shape {observation.shape[1:]} each and those of "
                f"the episodes before have {self.shape}; they must be alike: fit these on their "
                "own, or bring them to one shape."
            )
        if self.kinds and not np.all((observation >= 0) & (observation < self.kinds)):
            raise ValueError(
                f"an observation of {where} is {int(observation.max())} and whole numbers from 0 "
                f"to {self.kinds - 1} are known; fit on episodes that show every kind of state."
            )
        if np.dtype(self.dtype) != np.uint8 and not self.kinds:
            observation = observation.astype(np.float32)
            if self.mean is not None:
                observation = observation - np.array(self.mean, np.float32)
            observation = observation * np.array(self.scale, np.float32)
            if self.mean is not None:
                observation = np.clip(observation, -LARGEST, LARGEST)
        return dataclasses.replace(
            episode,
            observation=observation.astype(self.dtype),
            action=self._actions(episode.action, where),
            log_probs=self._policy(episode.log_probs),
            value=self._policy(episode.value),
        )

    @property
    def _action_dtype(self) -> Any:
        return np.float32 if self.num_actions is None else np.int32

    def _actions(self, action: np.ndarray | None, where: str) -> np.ndarray | None:
        if self.action_shape is None:
            return None
        if action is None or action.shape[1:] != self.action_shape:
            found = "are missing" if action is None else f"have shape {action.shape[1:]} each"
            raise ValueError(
                f"the actions of {where} {found}; those of the episodes before have shape "
                f"{self.action_shape} each: give all episodes actions of one shape, or none."
            )
        if self.num_actions is not None and not np.all((action >= 0) & (action < self.num_actions)):
            raise ValueError(
                f"an action of {where} is {int(action.max())} and actions from 0 to "
                f"{self.num_actions - 1} are known; fit on episodes that show every action."
            )
        return action.astype(self._action_dtype)

    def _policy(self, values: np.ndarray | None) -> np.ndarray | None:
        return values.astype(np.float32) if self.has_policy and values is not None else None


def read_format(episodes: Iterable[Episode], *, standardised: bool = True) -> Format:
    """The format of episodes, in one pass over them.

    Args:
      episodes: at least one; no more than one at a time is held.
      standardised: whether vectors are brought to mean 0 and standard deviation 1.
    """
    first: Episode | None = None
    max_episode_steps, kinds, actions, largest, count = 0, 0, 0, 0.0, 0
    total: Any = 0.0
    squares: Any = 0.0
    integers, policy = True, True
    for episode in episodes:
        first = first or episode
        observation, action = episode.observation, episode.action
        if observation.shape[1:] != first.observation.shape[1:]:
            break  # ``convert`` says which one, and what to do
        max_episode_steps = max(max_episode_steps, len(episode))
        policy &= episode.log_probs is not None and episode.value is not None
        if observation.dtype.kind in "iu" and observation.ndim == 1:
            kinds = max(kinds, int(observation.max()) + 1)
            if observation.min() < 0:
                kinds = FEW_KINDS + 1
        elif observation.ndim == 2:
            exact = observation.astype(np.float64)
            total = total + exact.sum(axis=0)
            squares = squares + np.square(exact).sum(axis=0)
            count += len(exact)
        elif observation.dtype != np.uint8:
            largest = max(largest, float(np.abs(observation).max()))
        if action is not None:
            integers &= action.dtype.kind in "biu" and action.ndim == 1 and action.min() >= 0
            actions = max(actions, int(action.max()) + 1) if integers else 0
    if first is None:
        raise ValueError("there is no episode to learn from; give at least two.")
    vector = first.observation.ndim == 2
    mean = scale = None
    if vector and standardised:
        mean = total / count
        spread = np.sqrt(np.maximum(squares / count - np.square(mean), 0))
        scale = 1 / np.where(spread > 1e-6 * np.maximum(np.abs(mean), 1), spread, 1.0)
    elif largest > 0:
        scale = np.array([1 / largest])
    bytes_stay = first.observation.dtype in (np.uint8, np.bool_) and not vector
    few = 0 < kinds <= FEW_KINDS
    return Format(
        shape=first.observation.shape[1:],
        dtype="int32" if few else "uint8" if bytes_stay else "float32",
        max_episode_steps=bucket(max_episode_steps),
        mean=None if mean is None else tuple(mean.tolist()),
        scale=(1.0,) if scale is None else tuple(scale.tolist()),
        kinds=kinds if few else 0,
        num_actions=actions if first.action is not None and integers else None,
        action_shape=None if first.action is None else first.action.shape[1:],
        has_policy=policy,
    )


def whole_segment(episode: Episode, view: View) -> Segment:
    """A whole episode as a segment of one stream, padded to one of few lengths."""
    size = bucket(len(episode))

    def column(x: np.ndarray | None, length: int = size) -> Any:
        if x is None:
            return None
        kept = x.astype(np.float32) if x.dtype == np.float64 else x
        return np.pad(kept, [(0, length - len(x))] + [(0, 0)] * (x.ndim - 1))[:, None]

    return Segment.of_episodes(
        np.array([len(episode)], np.int32),
        observation=view.crop(column(episode.observation, size + 1)),
        reward=column(episode.reward),
        discount=column(episode.discount),
        action=column(episode.action),
        log_probs=column(episode.log_probs),
        value=column(episode.value),
    )
