"""Returns and events of finished episodes, summed where the environments run."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from synthetic_returns.types import Events, TimeStep

__all__ = ["EpisodeStatistics"]


class EpisodeStatistics(eqx.Module):
    """Sums over the running episodes, and over those that finished since the last report.

    With several seeds trained as one, every array has an axis for them in front.

    Attributes:
      running: what the running episode of each environment has gathered so far, by name.
      finished: the same, summed over the finished episodes of each environment.
      episodes: how many finished in each environment.
    """

    running: dict[str, Float[Array, "*seeds batch"]]
    finished: dict[str, Float[Array, "*seeds batch"]]
    episodes: Float[Array, "*seeds batch"]

    @classmethod
    def zero(cls, timestep: TimeStep) -> "EpisodeStatistics":
        """Before the first step."""
        running = {name: jnp.zeros_like(x) for name, x in _gathered(timestep).items()}
        finished = jax.tree.map(jnp.zeros_like, running)
        return cls(running, finished, jnp.zeros_like(timestep.reward))

    def add(self, timestep: TimeStep) -> "EpisodeStatistics":
        """Adds one step of every environment."""
        gathered = _gathered(timestep)
        running = {name: self.running[name] + x for name, x in gathered.items()}
        last = timestep.last
        finished = {
            name: self.finished[name] + jnp.where(last, x, 0) for name, x in running.items()
        }
        running = jax.tree.map(lambda x: jnp.where(last, 0, x), running)
        return EpisodeStatistics(running, finished, self.episodes + last.astype(jnp.float32))

    def reported(self) -> "EpisodeStatistics":
        """The same running episodes with the finished ones forgotten."""
        # Times zero, and not zeros: the result stays on the devices where the sums are.
        finished, episodes = jax.tree.map(lambda x: x * 0, (self.finished, self.episodes))
        return EpisodeStatistics(self.running, finished, episodes)

    def interrupted(self) -> "EpisodeStatistics":
        """The same finished episodes with the running ones forgotten: these will never finish."""
        running = jax.tree.map(jnp.zeros_like, self.running)
        return EpisodeStatistics(running, self.finished, self.episodes)

    def means(self) -> dict[str, float]:
        """Per finished episode: return, length and every event; empty if none finished."""
        episodes = float(np.sum(self.episodes))
        if not episodes:
            return {}
        return {name: float(np.sum(total)) / episodes for name, total in self.finished.items()}


def _gathered(timestep: TimeStep) -> Events:
    """What one step adds to its episode's sums."""
    return {
        "episode_return": timestep.reward,
        "episode_steps": jnp.where(timestep.first, 0.0, 1.0),
    } | timestep.events
