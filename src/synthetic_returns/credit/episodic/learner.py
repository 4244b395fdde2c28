"""The episodic learner: give it finished episodes, ask it for contributions."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from synthetic_returns.agents.optimizers import steady_adam
from synthetic_returns.credit.episodes import Episode, EpisodeBuffer, bucket, thinned_length
from synthetic_returns.credit.episodic.model import EpisodicModel
from synthetic_returns.credit.episodic.options import EpisodicOptions
from synthetic_returns.credit.episodic.state import EpisodicState, examine, train
from synthetic_returns.types import Key

__all__ = ["EpisodicLearner"]

BUFFER = ("observation", "reward", "length", "seen")  # what an EpisodeBuffer holds
EXAMINED_STATES = 10_000  # at once, at most: episodes of images may end in many places together


class EpisodicLearner:
    """Learns contributions from finished episodes; knows nothing of the agent that made them.

    The interface of a credit method: ``learn`` takes finished episodes, ``contributions`` gives
    the synthetic return of any states.
    """

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        longest: int,
        options: EpisodicOptions,
        *,
        key: Key,
        dtype: Any = np.float32,
        encoder: Callable[[Array], Array] | None = None,
    ):
        """Draws the parameters and reserves the buffer.

        Args:
          observation_shape: shape of one observation.
          longest: the largest number of states with a successor in an episode.
          options: the choices.
          key: consumed here.
          dtype: how observations are kept.
          encoder: instead of the one that the options describe; see ``EpisodicModel``.
        """
        model_key, sample_key = jax.random.split(key)
        longest = thinned_length(longest, options.every)
        observation_shape = options.seen_shape(observation_shape)
        # A copy, because updates are made in place and the encoder is the caller's.
        encoder = jax.tree.map(lambda x: jnp.array(x) if eqx.is_array(x) else x, encoder)
        model = EpisodicModel(
            observation_shape, longest, options, key=model_key, encoder=encoder, dtype=dtype
        )
        optimizer = steady_adam(options.learning_rate).init(eqx.filter(model, eqx.is_array))
        self.options = options
        self.state = EpisodicState(
            model=model,
            optimizer=optimizer,
            reward_mean=jnp.zeros(2 if options.end else 1),
            reward_variance=jnp.ones(()),
            c_mean=jnp.zeros(()),
            c_rest=jnp.zeros(()),
            gate_scale=jnp.ones(()),
            updates=jnp.zeros((), jnp.int32),
            examined=jnp.zeros((), jnp.int32),
            evidence=jnp.zeros(2),
            at_stake=jnp.zeros(()),
            final=jnp.zeros(4) if options.end else None,
        )
        self.buffer = EpisodeBuffer(observation_shape, dtype, options.slots, longest)
        self.seed = int(jax.random.randint(sample_key, (), 0, 2**31 - 1))
        self.updates_owed = 0.0
        self.metrics: dict[str, Float[Array, ""]] = {}

    def learn(self, episodes: Iterable[Episode]) -> None:
        """Takes in finished episodes, and trains as often as they are worth."""
        episodes = [self._kept(episode) for episode in episodes]
        if not episodes:
            return
        longest = self.buffer.reward.shape[1]
        together = max(1, EXAMINED_STATES // bucket(max(map(len, episodes)), longest))
        for start in range(0, len(episodes), together):
            some = episodes[start : start + together]
            self.state = examine(self.state, *_padded(some, longest))
        rng = np.random.default_rng([self.seed, int(self.buffer.seen)])
        for episode in episodes:
            self.buffer.add(episode, rng)
        if len(self.buffer) < min(self.options.warmup, self.buffer.slots):
            return
        self.updates_owed += self.options.updates_per_episode * len(episodes)
        while self.updates_owed >= 1:
            self.updates_owed -= 1
            batch = self.buffer.sample(self.options.batch_size, rng)
            self.state, self.metrics = train(self.state, *map(jnp.asarray, batch))

    def _kept(self, episode: Episode) -> Episode:
        """What the model sees of an episode, which may be all that there is of it."""
        episode = episode.thinned(self.options.every)
        if episode.observation.shape[1:] == self.buffer.observation_shape:
            return episode
        return dataclasses.replace(episode, observation=self.options.seen(episode.observation))

    def contributions(self, observation: Shaped[Array, "*shape"]) -> Float[Array, "*batch"]:
        """The synthetic return of each state, in units of reward, scaled by trust."""
        return _contribution(self.state, observation)

    def snapshot(self) -> dict[str, Any]:
        """All that changes while learning, as a pytree of fixed shapes."""
        snapshot = {"state": self.state, "updates_owed": self.updates_owed}
        if self.options.save_episodes:
            snapshot |= {name: getattr(self.buffer, name) for name in BUFFER}
        return snapshot

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Goes on from a snapshot."""
        self.state = snapshot["state"]
        self.updates_owed = snapshot["updates_owed"]
        for name in snapshot.keys() & set(BUFFER):
            setattr(self.buffer, name, snapshot[name])

    def report(self) -> Mapping[str, Any]:
        """Diagnostics of the last update."""
        report = self.metrics | {
            "trust": self.state.trust,
            "buffer_episodes": len(self.buffer),
            "buffer_mb": self.buffer.bytes / 1e6,
        }
        if self.state.final is not None:
            report |= {
                "explained_by_c": self.state.explained_by_c,
                "explained_final": self.state.explained_final,
            }
        return report


_contribution = eqx.filter_jit(lambda state, observation: state.contribution(observation))


def _padded(episodes: list[Episode], longest: int) -> tuple[Array, Array, Array]:
    """Episodes side by side, padded to few different lengths and numbers."""
    time = bucket(max(map(len, episodes)), longest)
    batch = bucket(len(episodes), 1 << 30)
    like = episodes[0].observation
    observation = np.zeros((time, batch, *like.shape[1:]), like.dtype)
    reward = np.zeros((time, batch), np.float32)
    length = np.zeros(batch, np.int32)
    for row, episode in enumerate(episodes):
        observation[: len(episode), row] = episode.observation
        reward[: len(episode), row] = episode.reward
        length[row] = len(episode)
    return jnp.asarray(observation), jnp.asarray(reward), jnp.asarray(length)
