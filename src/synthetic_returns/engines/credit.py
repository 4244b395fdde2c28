"""Episodic credit beside any engine: from unrolls to the synthetic returns of their states."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from synthetic_returns.config import Config
from synthetic_returns.credit.episodes import EpisodeCutter
from synthetic_returns.credit.episodic.learner import EpisodicLearner
from synthetic_returns.credit.episodic.method import Episodic
from synthetic_returns.credit.episodic.options import episodic_options
from synthetic_returns.types import Trajectory

__all__ = ["EpisodicCredit", "has_episodic_credit"]

RUNNING = ("observation", "reward", "length")  # what an EpisodeCutter holds


def has_episodic_credit(config: Config) -> bool:
    """Whether credit comes from a model that is trained on whole episodes."""
    return isinstance(config.credit, Episodic)


class EpisodicCredit:
    """The episodic learner of one seed and the episodes that are still running.

    Attributes:
      learner: the model and its buffer of whole episodes.
    """

    def __init__(self, config: Config, seed: int, streams: int = 1, stream_envs: int | None = None):
        """Draws the parameters and reserves the buffers.

        Args:
          config: the settings.
          seed: of the run.
          streams: how many actors send unrolls; each has environments of its own.
          stream_envs: how many each has; the whole batch unless given.
        """
        assert isinstance(config.credit, Episodic)
        env, options = config.task, episodic_options(config.credit, config.view)
        key = jax.random.fold_in(jax.random.key(seed), 1)
        self.learner = EpisodicLearner(
            env.observation_shape,
            env.episode_steps,
            options,
            key=key,
            dtype=env.observation_dtype,
        )
        self._cutters = [
            EpisodeCutter(
                options.seen_shape(env.observation_shape),
                env.observation_dtype,
                stream_envs or config.engine.num_envs,
                env.episode_steps,
                every=options.every,
                truncated_reward=options.truncated_reward,
            )
            for _ in range(streams)
        ]

    def follow(self, trajectory: Trajectory, stream: int = 0) -> Float[Array, "time batch"]:
        """Learns from the episodes that end in an unroll; gives its synthetic returns."""
        timestep = trajectory.timestep
        # Whole frames are not kept until their episode ends.
        seen = self.learner.options.seen(timestep.observation)
        kept = dataclasses.replace(timestep, observation=seen)
        self.learner.learn(self._cutters[stream].cut(kept))
        c_t = self.learner.contributions(timestep.observation[1:])
        # A terminal state has no later reward to contribute to, and is never trained on.
        return jnp.where(timestep.last[1:], 0, c_t)

    def forget(self, stream: int) -> None:
        """The running episodes of an actor will not go on."""
        self._cutters[stream].forget()

    def snapshot(self, *, running: bool = True) -> dict[str, Any]:
        """All that changes while learning.

        Args:
          running: with the running episodes, of a single stream. They are of use only where the
            environments that they run in are saved too.
        """
        snapshot: dict[str, Any] = {"learner": self.learner.snapshot()}
        if running:
            (cutter,) = self._cutters
            snapshot["running"] = {name: getattr(cutter, name) for name in RUNNING}
        return snapshot

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Goes on from a snapshot."""
        self.learner.restore(snapshot["learner"])
        for name, array in snapshot.get("running", {}).items():
            setattr(self._cutters[0], name, array)
