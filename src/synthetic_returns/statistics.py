"""Returns and events of finished episodes, summed where the environments run."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from synthetic_returns.types import Events, TimeStep

__all__ = ["EpisodeStatistics"]


class EpisodeStatistics(eqx.Module):
    """Sums over the running episodes, and over those that finished since the last report.

    With several seeds trained as one, every array has an axis for them in front.

    Attributes:
      running: what each running episode has gathered so far, by name; ``[B]``.
      finished: the same, summed over all finished episodes.
      episodes: how many finished.
    """

    running: dict[str, Float[Array, "*seeds batch"]]
    finished: dict[str, Float[Array, "*seeds"]]
    episodes: Float[Array, "*seeds"]

    @classmethod
    def zero(cls, timestep: TimeStep) -> "EpisodeStatistics":
        """Before the first step."""
        running = {name: jnp.zeros_like(x) for name, x in _gathered(timestep).items()}
        return cls(running, jax.tree.map(lambda _: jnp.zeros(()), running), jnp.zeros(()))

    def add(self, timestep: TimeStep) -> "EpisodeStatistics":
        """Takes in one step of every environment."""
        gathered = _gathered(timestep)
        running = {name: self.running[name] + x for name, x in gathered.items()}
        last = timestep.last
        finished = {
            name: self.finished[name] + jnp.sum(jnp.where(last, x, 0))
            for name, x in running.items()
        }
        running = jax.tree.map(lambda x: jnp.where(last, 0, x), running)
        return EpisodeStatistics(
            running, finished, self.episodes + jnp.sum(last, dtype=jnp.float32)
        )

    def reported(self) -> "EpisodeStatistics":
        """The same running episodes with the finished ones forgotten."""
        finished = jax.tree.map(jnp.zeros_like, self.finished)
        return EpisodeStatistics(self.running, finished, jnp.zeros_like(self.episodes))

    def means(self) -> dict[str, float]:
        """Per finished episode: return, length and every event; empty if none finished."""
        episodes = float(self.episodes)
        if not episodes:
            return {}
        return {name: float(total) / episodes for name, total in self.finished.items()}


def _gathered(timestep: TimeStep) -> Events:
    """What one step adds to its episode's sums."""
    return {
        "episode_return": timestep.reward,
        "episode_steps": jnp.where(timestep.first, 0.0, 1.0),
    } | timestep.events
