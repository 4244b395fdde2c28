"""Credit for environments that are stepped together: the core that all wrappers share."""

import collections
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict

import jax
import numpy as np
from gymnasium import Space, spaces
from jaxtyping import Array

from synthetic_returns.credit.choosing import rewarding_method
from synthetic_returns.credit.data.episode import Episode, Segment
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.explanation import Explanation
from synthetic_returns.credit.method import Assigner
from synthetic_returns.credit.reward_mix import RewardMix
from synthetic_returns.credit.saved import load_driver, save_driver
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.utils.checks import check_positive
from synthetic_returns.wrappers.observations import ObservationFunction, observation_format

__all__ = ["Settings", "StreamCredit"]

MAX_EPISODE_STEPS = 1000  # where the environment does not name a time limit
RECENT = 100  # finished episodes that are kept, and over which returns are averaged


class Settings(TypedDict, total=False):
    """The settings of a wrapper; ``StreamCredit`` describes them and their defaults."""

    method: Assigner | str
    alpha: float
    beta: float
    max_episode_steps: int
    view: View
    encoder: Callable[[Array], Array] | None
    observation_fn: ObservationFunction | None
    learn_every: int
    overlap: bool
    memory_mb: float
    seed: int


class StreamCredit:
    """Follows environments that are stepped together, learns from them, and augments their rewards.

    A row is one of the environments. A row is *running* while it has an episode that the next
    action continues; otherwise the next observation starts one, or the row waits for a reset.

    Attributes:
      driver: runs the credit method.
      mix: how credit and the environment's reward are combined.
      running: the rows whose episode the next action continues.
    """

    def __init__(
        self,
        observation_space: Space,
        action_space: Space,
        num_envs: int,
        *,
        method: Assigner | str = "advance",
        alpha: float = 1.0,
        beta: float = 1.0,
        max_episode_steps: int = MAX_EPISODE_STEPS,
        view: View | None = None,
        encoder: Callable[[Array], Array] | None = None,
        observation_fn: ObservationFunction | None = None,
        learn_every: int = 16,
        overlap: bool = False,
        memory_mb: float = 1000.0,
        seed: int = 0,
    ):
        """Draws the parameters and reserves the memory.

        Args:
          observation_space: of one environment.
          action_space: of one environment.
          num_envs: number of environments.
          method: the credit method, by name or with settings of your own, for instance
            ``Episodic(horizon=5)``. For each new state it trains on ``replay.updates_per_episode``
            times ``replay.batch_size`` states, which determines its cost.
          alpha: weight of the credit.
          beta: weight of the environment's reward.
          max_episode_steps: expected length of the longest episode; the buffer grows for longer
            ones.
          view: what the method sees of the observations; by default everything.
          encoder: an Equinox module, or any callable pytree, that maps observations with any
            leading axes to features; None chooses one by the shape of the observations.
          observation_fn: maps a batch of observations to the array ``[num_envs, ...]`` that the
            method sees; needed for Dict and other composed spaces.
          learn_every: the method trains each time this many episodes have finished.
          overlap: train in a separate thread while the agent acts. Credit is then computed with the
            model as it was before the newest ``learn_every`` episodes. Runs stay exactly
            repeatable.
          memory_mb: memory limit of the episode buffer; it keeps fewer than ``replay.slots``
            episodes if they do not fit.
          seed: random seed.
        """
        check_positive("max_episode_steps", max_episode_steps)
        check_positive("learn_every", learn_every)
        method, view = rewarding_method(method), view or View()
        self.mix = RewardMix(alpha=alpha, beta=beta)
        _check_in_full(method, beta)
        self._observed = observed = observation_format(observation_space, num_envs, observation_fn)
        if observed.channels_first and (view.rows or view.columns or view.changes):
            raise ValueError(
                f"the view looks at {view} and observations have shape {observed.shape}, channels "
                "first; a view crops images whose channels come last: move the axis in "
                "observation_fn."
            )
        # Composed actions cannot be stored.
        simple = (spaces.Discrete, spaces.Box, spaces.MultiDiscrete, spaces.MultiBinary)
        self._keeps_actions = isinstance(action_space, simple)
        numbered = isinstance(action_space, spaces.Discrete) and action_space.start == 0
        num_actions = int(action_space.n) if numbered else None  # pyright: ignore
        spec = EpisodeSpec.seen(
            view,
            observed.shape,
            observed.dtype,
            max_episode_steps,
            num_actions=num_actions,
            action_shape=(action_space.shape or ()) if self._keeps_actions else (),
            action_dtype=action_space.dtype if self._keeps_actions else None,
            kinds=observed.kinds,
            channels_first=observed.channels_first,
            scale=observed.scale,
            unbounded=observed.unbounded,
            encoder=encoder,
        )
        self.driver: CreditDriver[None] = CreditDriver(
            method,
            spec,
            view,
            max_episode_steps=max_episode_steps,
            num_envs=num_envs,
            memory_mb=memory_mb,
            learn_every=learn_every,
            overlap=overlap,
            recent=RECENT,
            key=jax.random.key(seed),
        )
        self.running = np.zeros(num_envs, bool)
        self._first = np.zeros(num_envs, bool)
        self._state = np.zeros((num_envs, *observed.shape), observed.dtype)
        self._returns = np.zeros(num_envs)
        self._recent_returns: collections.deque[float] = collections.deque(maxlen=RECENT)

    @property
    def alpha(self) -> float:
        """Weight of the credit."""
        return self.mix.alpha

    @alpha.setter
    def alpha(self, value: float) -> None:
        self.mix = dataclasses.replace(self.mix, alpha=value)

    @property
    def beta(self) -> float:
        """Weight of the environment's reward."""
        return self.mix.beta

    @beta.setter
    def beta(self, value: float) -> None:
        _check_in_full(self.driver.method, value)
        self.mix = dataclasses.replace(self.mix, beta=value)

    def begin(self, observation: Any, rows: np.ndarray | None = None) -> None:
        """Starts episodes in all rows, or in some; drops the episodes that were running there."""
        rows = np.ones(len(self.running), bool) if rows is None else rows
        state = self._observed(observation)
        self._state[rows] = state[rows]
        self._begin(rows)

    def step(
        self,
        action: Any,
        observation: Any,
        reward: np.ndarray,
        *,
        ended: np.ndarray,
        terminated: np.ndarray,
        starts: np.ndarray,
        final: Mapping[int, Any],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Adds one step of all rows.

        Args:
          action: the actions.
          observation: the observations after them; where an episode starts, its first observation.
          reward: the environment's rewards.
          ended: where an episode terminated or was truncated.
          terminated: where an episode terminated.
          starts: where the observation is the first of an episode.
          final: by row, the last observation of an episode that ended in the same step in which
            another one starts. Where it is missing, the observation before it stands in.

        Returns:
          The augmented reward and the credit. The credit is 0 where an episode ended, and on steps
          that only start one.
        """
        reward = np.asarray(reward)
        stepped, ended = self.running, ended & self.running
        self._check_rewards(reward, stepped)
        state = self._observed(observation)
        arrived = self._arrived(state, ended, starts, final)
        credit = self._follow(action, arrived, reward, stepped, ended, terminated, starts)
        self._returns[stepped] += reward[stepped]
        self._recent_returns.extend(self._returns[ended].tolist())
        self._state, self._first = state, starts & ~stepped
        self.running = stepped & ~ended
        self._begin(starts)
        kind = reward.dtype if reward.dtype.kind == "f" else np.dtype(np.float64)
        return self.mix.augmented(reward, credit, ended).astype(kind), credit

    def kept(self, observation: Any) -> np.ndarray:
        """What is kept of a batch of observations, for the method to see."""
        return self.driver.view.crop(self._observed(observation))

    def explain(self, episode: Episode) -> Explanation:
        """What the method says about every state of an episode, the terminal one included.

        Args:
          episode: for instance one of ``recent_episodes()``.
        """
        shape, states = self.driver.spec.kept_shape, np.shape(episode.observation)
        if states[1:] != shape or states[:1] != (len(episode) + 1,) or not len(episode):
            raise ValueError(
                f"the episode's observations have shape {states}, the first axis time; they must "
                f"have shape (steps + 1, *{shape}), here {len(episode)} steps, as in "
                "recent_episodes()."
            )
        return self.driver.explain(episode)

    def recent_episodes(self) -> list[Episode]:
        """The episodes that ended last, at most 100, oldest first."""
        return list(self.driver.recent)

    def freeze(self) -> None:
        """Switches learning and recording off, for evaluation."""
        self.driver.freeze()

    def unfreeze(self) -> None:
        """Goes on learning, from the episodes that start from now on."""
        self.driver.unfreeze()

    def save(self, path: str | Path) -> None:
        """Writes all that was learned, and the episodes to learn from, to one file."""
        save_driver(Path(path), self.driver)

    def load(self, path: str | Path) -> None:
        """Goes on from what ``save`` wrote; episodes that are running stay as they are."""
        load_driver(Path(path), self.driver)

    def report(self) -> dict[str, float]:
        """Figures to log: how well rewards are predicted, and the true returns."""
        returns = self._recent_returns
        return self.driver.report() | {
            "episodes": float(self.driver.buffer.seen),
            "true_return": float(np.mean(returns)) if returns else float("nan"),
        }

    def _begin(self, rows: np.ndarray) -> None:
        self.running = self.running | rows
        self._first = self._first | rows
        self._returns[rows] = 0

    def _arrived(
        self, state: np.ndarray, ended: np.ndarray, starts: np.ndarray, final: Mapping[int, Any]
    ) -> np.ndarray:
        """The states that were arrived in; the terminal ones where an episode ended.

        Where another one has started already and nobody tells, the state before stands in.
        """
        replaced = ended & starts
        if not replaced.any():
            return state
        arrived = state.copy()
        arrived[replaced] = self._state[replaced]
        known = [row for row in final if replaced[row] and final[row] is not None]
        if known:
            arrived[known] = self._observed.final([final[row] for row in known], len(ended))
        return arrived

    def _follow(
        self,
        action: Any,
        arrived: np.ndarray,
        reward: np.ndarray,
        stepped: np.ndarray,
        ended: np.ndarray,
        terminated: np.ndarray,
        starts: np.ndarray,
    ) -> np.ndarray:
        """The credit of one step of all rows: a segment of one transition."""
        segment = Segment(
            observation=self.driver.view.crop(np.stack([self._state, arrived])),
            first=np.stack([self._first, starts & ~stepped]),
            last=np.stack([~stepped, ended]),
            reward=reward[None].astype(np.float32),
            discount=np.where(ended & terminated, np.float32(0), np.float32(1))[None],
            action=np.asarray(action)[None] if self._keeps_actions else None,
        )
        c = np.asarray(self.driver.rewards(segment))[0]
        if not np.all(np.isfinite(c)):
            row = int(np.flatnonzero(~np.isfinite(c))[0])
            raise ValueError(
                f"the credit in environment {row} is {c[row]}; it must be finite: look for "
                "infinite or very large observations, or lower the method's learning_rate."
            )
        return c

    def _check_rewards(self, reward: np.ndarray, stepped: np.ndarray) -> None:
        flawed = np.flatnonzero(stepped & ~np.isfinite(reward))
        if len(flawed):
            raise ValueError(
                f"the reward of environment {flawed[0]} is {reward[flawed[0]]}; it must be finite: "
                "find where the environment produces it."
            )


def _check_in_full(method: Assigner, beta: float) -> None:
    """A conserving method subtracts its credit at the end, so rewards have to count in full."""
    if method.conserves and beta != 1:
        raise ValueError(
            f"beta is {beta:g} and the credit method {method.name!r} subtracts its credit at the "
            "end of an episode, so that the rewards replace it: leave beta at 1, or choose a "
            "method that does not, such as 'episodic'."
        )
