"""Credit for a stream of steps: the core that all wrappers share."""

import collections
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import Space, spaces
from jaxtyping import Array

from synthetic_returns.credit.episodes import Episode, EpisodeCutter
from synthetic_returns.credit.episodic.learner import EpisodicLearner
from synthetic_returns.credit.episodic.options import EpisodicOptions
from synthetic_returns.credit.old_explanation import Explanation
from synthetic_returns.utils.checks import check_finite_number, check_positive
from synthetic_returns.wrappers.encoders import make_encoder
from synthetic_returns.wrappers.memory import slots_that_fit
from synthetic_returns.wrappers.observations import ObservationFunction, observation_format
from synthetic_returns.wrappers.saved import load_learner, save_learner

__all__ = ["Settings", "StreamCredit"]

LONGEST = 1000  # steps of an episode, where the environment does not name a time limit
RECENT = 100  # finished episodes that are averaged over, and can be asked for


class Settings(TypedDict, total=False):
    """The settings of a wrapper; ``StreamCredit`` says what they mean and what they are else."""

    alpha: float
    beta: float
    longest: int
    options: EpisodicOptions | None
    encoder: Callable[[Array], Array] | None
    observation_fn: ObservationFunction | None
    learn_every: int
    memory_mb: float
    seed: int


class StreamCredit:
    """Follows environments that are stepped together; learns, and augments their rewards.

    A row is one of the environments. A row is *running* while it has an episode that the next
    action continues; otherwise the next observation starts one, or the row waits for a reset.

    Attributes:
      learner: the episodic learner.
      running: the rows whose episode the next action continues.
      frozen: whether learning and recording are switched off.
    """

    def __init__(
        self,
        observation_space: Space,
        action_space: Space,
        num_envs: int,
        *,
        alpha: float = 1.0,
        beta: float = 1.0,
        longest: int = LONGEST,
        options: EpisodicOptions | None = None,
        encoder: Callable[[Array], Array] | None = None,
        observation_fn: ObservationFunction | None = None,
        learn_every: int = 16,
        memory_mb: float = 1000.0,
        seed: int = 0,
    ):
        """Draws the parameters and reserves the memory.

        Args:
          observation_space: of one environment.
          action_space: of one environment.
          num_envs: how many there are.
          alpha: weight of the synthetic return.
          beta: weight of the environment's reward.
          longest: the largest number of steps in an episode.
          options: of the episodic learner; ``updates_per_episode`` times ``batch_size`` is how many
            states it trains on for each one seen, and so what it costs.
          encoder: an Equinox module, or any pytree that can be called, from observations with any
            leading axes to features; None chooses one by the shape of the observations.
          observation_fn: from a batch of observations to the array ``[num_envs, ...]`` that credit
            is given to; needed for Dict and other composed spaces.
          learn_every: finished episodes wait until there are so many and are then learned from
            together, never more than this in one step.
          memory_mb: upper bound of the memory for episodes; where ``options.slots`` episodes of the
            longest kind would not fit, fewer are kept.
          seed: of everything random.
        """
        check_positive("longest", longest)
        check_positive("learn_every", learn_every)
        self.alpha, self.beta = alpha, beta
        options = EpisodicOptions() if options is None else options
        _check_options(options)
        self._observed = observation_format(observation_space, num_envs, observation_fn)
        shape, dtype = self._observed.shape, self._observed.dtype
        options = slots_that_fit(memory_mb, options, num_envs, longest, shape, dtype)
        encoder_key, learner_key = jax.random.split(jax.random.key(seed))
        if encoder is None:
            encoder = make_encoder(self._observed, options, key=encoder_key)
        self.learner = EpisodicLearner(
            shape, longest, options, key=learner_key, dtype=dtype, encoder=encoder
        )
        remedy = f"make the wrapper with longest={2 * longest}, or whatever the longest episode is"
        self._cutter = EpisodeCutter(shape, dtype, num_envs, longest, remedy)
        self._learn_every = learn_every
        self._waiting: collections.deque[Episode] = collections.deque(maxlen=options.slots)
        self.frozen = False
        self.running = np.zeros(num_envs, bool)
        self._recorded = np.zeros(num_envs, bool)  # rows whose episode is recorded from its start
        self._state = np.zeros((num_envs, *shape), dtype)
        # Actions are only kept to be looked at; composed ones are left out.
        simple = (spaces.Discrete, spaces.Box, spaces.MultiDiscrete, spaces.MultiBinary)
        self._keeps_actions = isinstance(action_space, simple)
        self._actions: list[list[np.ndarray]] = [[] for _ in range(num_envs)]
        self._returns = np.zeros(num_envs)
        self._recent_returns: collections.deque[float] = collections.deque(maxlen=RECENT)
        self._recent: collections.deque[Episode] = collections.deque(maxlen=RECENT)
        self._use_learned()

    @property
    def alpha(self) -> float:
        """Weight of the synthetic return."""
        return self._alpha

    @alpha.setter
    def alpha(self, value: float) -> None:
        check_finite_number("alpha", value)
        self._alpha = float(value)

    @property
    def beta(self) -> float:
        """Weight of the environment's reward."""
        return self._beta

    @beta.setter
    def beta(self, value: float) -> None:
        check_finite_number("beta", value)
        self._beta = float(value)

    def begin(self, observation: Any, rows: np.ndarray | None = None) -> None:
        """Starts episodes in all rows, or in some; what was running there is forgotten."""
        rows = np.ones(len(self.running), bool) if rows is None else rows
        state = self._observed(observation)
        self._state[rows] = state[rows]
        self._begin(rows)

    def step(
        self,
        action: Any,
        observation: Any,
        reward: np.ndarray,
        ended: np.ndarray,
        starts: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Takes in one step of all rows.

        Args:
          action: what was done.
          observation: what came of it; the first observation of an episode where one starts.
          reward: the environment's.
          ended: where an episode ended, for whatever reason.
          starts: where the observation is the first of an episode. If an episode also ended there,
            its last observation is not needed: no later reward can depend on it.

        Returns:
          The augmented reward and the synthetic return. The latter is 0 where no state was
          arrived in: where the episode ended, and on steps that only start one.
        """
        reward = np.asarray(reward)
        stepped, ended = self.running, ended & self.running
        self._record(action, reward, stepped, ended)
        state = self._observed(observation)
        arrived = stepped & ~ended
        c = np.where(arrived, self._contributions(state), np.float32(0))
        if not np.all(np.isfinite(c)):
            row = int(np.flatnonzero(~np.isfinite(c))[0])
            raise ValueError(
                f"the synthetic return in environment {row} is {c[row]}; it must be finite: look "
                "for observations that are not or are very large, or lower options.learning_rate."
            )
        self._state = state
        self.running = arrived
        self._begin(starts)
        self._learn()
        kind = reward.dtype if reward.dtype.kind == "f" else np.dtype(np.float64)
        return (self.alpha * c + self.beta * reward).astype(kind), c

    def explain(self, episode: Episode) -> Explanation:
        """What the model says about every state of an episode, as arrays over time.

        Args:
          episode: for instance one of ``recent_episodes()``.
        """
        observation = np.asarray(episode.observation, self._observed.dtype)
        if observation.shape[1:] != self._observed.shape or not len(observation):
            raise ValueError(
                f"the episode's observations have shape {observation.shape}, the first axis time; "
                f"they must have shape (steps, *{self._observed.shape}), as in recent_episodes()."
            )
        valid = jnp.ones((len(observation), 1), bool)
        explanation = _explain(self.learner.state, jnp.asarray(observation)[:, None], valid)
        return jax.tree.map(lambda x: x[:, 0], explanation)

    def recent_episodes(self) -> list[Episode]:
        """The episodes that ended last, at most 100, oldest first."""
        return list(self._recent)

    def freeze(self) -> None:
        """Switches learning and recording off, for evaluation."""
        self.frozen = True
        self._recorded[:] = False

    def unfreeze(self) -> None:
        """Goes on learning, from the episodes that start from now on."""
        self.frozen = False

    def save(self, path: str | Path) -> None:
        """Writes all that was learned, and the episodes to learn from, to one file."""
        save_learner(Path(path), self.learner)

    def load(self, path: str | Path) -> None:
        """Goes on from what ``save`` wrote; episodes that are running stay as they are."""
        load_learner(Path(path), self.learner)
        self._waiting.clear()
        self._use_learned()

    def report(self) -> dict[str, float]:
        """Figures to log: how well rewards are predicted, and the true returns."""
        report = {name: float(value) for name, value in self.learner.report().items()}
        returns = self._recent_returns
        report["episodes"] = float(self.learner.buffer.seen)
        report["true_return"] = float(np.mean(returns)) if returns else float("nan")
        return report

    def _begin(self, rows: np.ndarray) -> None:
        if not rows.any():
            return
        self.running = self.running | rows
        self._recorded[rows] = not self.frozen
        self._cutter.length[rows] = 0
        self._returns[rows] = 0
        for row in np.flatnonzero(rows):
            self._actions[row] = []

    def _record(
        self, action: Any, reward: np.ndarray, stepped: np.ndarray, ended: np.ndarray
    ) -> None:
        """Adds the states that were left, and the rewards of leaving them, to their episodes."""
        flawed = np.flatnonzero(stepped & ~np.isfinite(reward))
        if len(flawed):
            raise ValueError(
                f"the reward of environment {flawed[0]} is {reward[flawed[0]]}; it must be finite: "
                "find where the environment produces it."
            )
        self._returns[stepped] += reward[stepped]
        self._recent_returns.extend(self._returns[ended].tolist())
        rows = np.flatnonzero(stepped & self._recorded)
        self._cutter.append(rows, self._state[rows], reward[rows])
        if self._keeps_actions:
            for row in rows:
                self._actions[row].append(action[row])
        for row in np.flatnonzero(ended & self._recorded):
            episode = self._cutter.finish(row)
            if self._keeps_actions:
                episode = Episode(episode.observation, episode.reward, np.array(self._actions[row]))
            self._waiting.append(episode)
            self._recent.append(episode)

    def _learn(self) -> None:
        if self.frozen or len(self._waiting) < self._learn_every:
            return
        self.learner.learn([self._waiting.popleft() for _ in range(self._learn_every)])
        self._use_learned()

    def _use_learned(self) -> None:
        """Takes what c needs out of the learner; handing over all of it on each step is slow."""
        state = eqx.tree_at(lambda s: s.optimizer, self.learner.state, None)
        arrays, rest = eqx.partition(state, eqx.is_array)
        self._parameters, structure = jax.tree.flatten(arrays)  # lists are faster to hand over
        if not hasattr(self, "_contribution"):  # what is no array never changes

            def contribution(parameters: list[Array], observation: Array) -> Array:
                state = eqx.combine(jax.tree.unflatten(structure, parameters), rest)
                return state.contribution(observation)

            self._contribution = jax.jit(contribution)

    def _contributions(self, state: np.ndarray) -> np.ndarray:
        return np.asarray(self._contribution(self._parameters, state))


_explain = eqx.filter_jit(lambda state, observation, valid: state.explain(observation, valid))


def _check_options(options: EpisodicOptions) -> None:
    """Refuses what is not done to the episodes of a wrapper, instead of leaving it out."""
    remedies = {
        "rows": "cut the observations in observation_fn",
        "columns": "cut the observations in observation_fn",
        "changes": "take the differences of frames in observation_fn",
        "truncated_reward": "change the last reward in a wrapper of your own, below this one",
    }
    for name, remedy in remedies.items():
        value = getattr(options, name)
        if value is not None and value is not False:
            raise ValueError(
                f"options.{name} is {value}; a wrapper takes observations and rewards as they "
                f"are: leave it out, and {remedy}."
            )
