"""A bandit in each environment that chooses how far to look ahead and how much to explore."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from synthetic_returns.agents.r2d2.settings import BanditSettings
from synthetic_returns.types import Trajectory

__all__ = ["Bandits", "discount_ladder"]


def discount_ladder(least: float, most: float, count: int) -> Float[Array, "count"]:
    """Discounts from ``least`` to ``most``, in equal ratios of ``1 - discount``.

    Args:
      least: of the first one.
      most: of the last one.
      count: how many; a single one is ``most``.
    """
    rungs = jnp.arange(count, dtype=jnp.float32) / max(1, count - 1)
    if count == 1:
        rungs = jnp.ones(1)
    return 1 - jnp.power(jnp.float32(1 - least), 1 - rungs) * jnp.power(
        jnp.float32(1 - most), rungs
    )


class Bandits:
    """Sliding-window UCB in each environment (Garivier and Moulines 2011; Agent57).

    An arm is a pair of a discount and a share of random actions. A bandit chooses one for each
    episode, by what the last episodes with it returned.

    Attributes:
      arm: that each environment plays now, ``[streams, envs]``.
    """

    def __init__(self, settings: BanditSettings, streams: int, num_envs: int, seed: int = 0):
        """Nothing is known; environments begin with different arms.

        Args:
          settings: of the bandits.
          streams: batches of environments.
          num_envs: environments of each.
          seed: of the choices at random.
        """
        self._settings, self._seed = settings, seed
        shape = (streams, num_envs)
        self.arm = (np.arange(streams * num_envs) % settings.arms).astype(np.int32).reshape(shape)
        self._played = np.full((*shape, settings.window), -1, np.int32)
        self._returned = np.zeros((*shape, settings.window), np.float32)
        self._episodes = np.zeros(shape, np.int64)
        self._return = np.zeros(shape, np.float32)

    def follow(self, trajectory: Trajectory, stream: int = 0) -> None:
        """Adds an unroll; environments whose episodes ended in it choose again.

        An episode counts for the arm with which it ends. A new arm is played from the next unroll
        on, so that an episode may begin with the one before.
        """
        reward = np.asarray(trajectory.timestep.reward)[1:]
        last = np.asarray(trajectory.timestep.last)[1:]
        for reward_t, last_t in zip(reward, last, strict=True):
            self._return[stream] += reward_t
            for env in np.flatnonzero(last_t):
                self._tell(stream, int(env), float(self._return[stream, env]))
                self._return[stream, env] = 0
        for env in np.flatnonzero(last.any(axis=0)):
            self.arm[stream, env] = self.choice(stream, int(env))

    def forget(self, stream: int) -> None:
        """The running episodes of a stream will not go on."""
        self._return[stream] = 0

    def choice(self, stream: int, env: int) -> int:
        """The arm that is best, as far as one knows, or one that was not played in the window.

            argmax of mean(return) + bonus * sqrt(log(episodes) / times played)

        Both are of the window, with returns from 0 for the worst to 1 for the best in it.
        """
        settings = self._settings
        episodes = int(self._episodes[stream, env])
        rng = np.random.default_rng([self._seed, stream, env, episodes])
        if rng.random() < settings.random:
            return int(rng.integers(settings.arms))
        known = self._played[stream, env] >= 0
        played, returned = self._played[stream, env, known], self._returned[stream, env, known]
        times = np.bincount(played, minlength=settings.arms)
        if (times == 0).any():
            return int(np.flatnonzero(times == 0)[0])
        spread = max(float(np.ptp(returned)), 1e-8)
        worth = np.bincount(played, (returned - returned.min()) / spread, settings.arms) / times
        return int(np.argmax(worth + settings.bonus * np.sqrt(np.log(len(played)) / times)))

    def report(self) -> dict[str, float]:
        """The mean arm that is played: 0 looks least far ahead and explores most."""
        return {"arm": float(self.arm.mean())}

    def snapshot(self) -> dict[str, Any]:
        """All that changes."""
        return {
            "arm": self.arm,
            "played": self._played,
            "returned": self._returned,
            "episodes": self._episodes,
            "return": self._return,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Restores a snapshot."""
        self.arm, self._played = snapshot["arm"], snapshot["played"]
        self._returned, self._episodes = snapshot["returned"], snapshot["episodes"]
        self._return = snapshot["return"]

    def _tell(self, stream: int, env: int, value: float) -> None:
        slot = int(self._episodes[stream, env]) % self._settings.window
        self._played[stream, env, slot] = self.arm[stream, env]
        self._returned[stream, env, slot] = value
        self._episodes[stream, env] += 1
