"""The clock: how long an episode has lasted, as features."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

__all__ = ["ClockCore", "ClockState", "clock_size", "time_features"]


def clock_size(max_episode_steps: int) -> int:
    """The number of time features for episodes of at most this length."""
    return 2 * max(2, (2 * max_episode_steps).bit_length())


def time_features(
    time: Int[Array, "*batch"], max_episode_steps: int
) -> Float[Array, "*batch size"]:
    """Sines and cosines of the time since the episode began, from fast to one turn an episode."""
    turns = 2.0 ** jnp.arange(clock_size(max_episode_steps) // 2, dtype=jnp.float32)
    angle = jnp.multiply.outer(time.astype(jnp.float32), jnp.pi / turns)
    return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1)


class ClockState(eqx.Module):
    """The number of steps seen since the last episode began."""

    steps: Int[Array, "*batch"]


class ClockCore(eqx.Module):
    """Joins the features with the time of the episode; nothing in it is learned.

    An agent without any memory cannot know that time runs out, and so blames its last actions for
    the end of a phase.
    """

    max_episode_steps: int = eqx.field(static=True)

    def initial_state(self, batch: int) -> ClockState:
        """The state before an episode."""
        return ClockState(jnp.zeros(batch, jnp.int32))

    def __call__(
        self,
        x: Float[Array, "time batch features"],
        first: Bool[Array, "time batch"],
        state: ClockState,
    ) -> tuple[Float[Array, "time batch size"], ClockState]:
        """Counts over time, from zero where an episode starts."""
        index = jnp.arange(len(first), dtype=jnp.int32)[:, None]
        # Where the running episode began: in this unroll, or before it.
        begin = jax.lax.cummax(jnp.where(first, index, -state.steps[None]), axis=0)
        time = index - begin
        features = jnp.concatenate([x, time_features(time, self.max_episode_steps)], axis=-1)
        return features, ClockState(time[-1] + 1)
