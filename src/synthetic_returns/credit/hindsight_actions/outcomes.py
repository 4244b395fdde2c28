"""Outcomes: what came after a step, as the hindsight distribution sees it."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from synthetic_returns.credit.data.episode import EpisodeBatch

__all__ = [
    "Outcomes",
    "RewardClasses",
    "at_steps",
    "chosen_steps",
    "later",
    "most_rewarding",
    "outcomes_of_classes",
    "outcomes_of_steps",
]


class Outcomes(eqx.Module):
    """N outcomes of each episode: kinds of rewards, or some of its steps.

    Attributes:
      psi: what the model sees of each.
      count: how often each comes after each step.
      reward: how much it pays in all after each step.
      index: which outcome each step of the episode is; -1 if it is none.
    """

    psi: Float[Array, "outcomes batch rank"]
    count: Float[Array, "time outcomes batch"]
    reward: Float[Array, "time outcomes batch"]
    index: Int[Array, "time batch"]


class RewardClasses(eqx.Module):
    """The different rewards that have been seen, other than 0, in the order of their appearance.

    Where there are more than fit, a reward is of the class whose value is nearest.

    Attributes:
      values: of the classes.
      known: how many there are.
    """

    values: Float[Array, "classes"]
    known: Int[Array, ""]

    @classmethod
    def none(cls, most: int) -> "RewardClasses":
        """No rewards were seen yet; there may be so many classes."""
        return cls(jnp.zeros(most), jnp.zeros((), jnp.int32))

    def seen(self, episodes: EpisodeBatch) -> "RewardClasses":
        """With the classes that appear in episodes."""
        most = len(self.values)
        reward = jnp.where(episodes.valid, episodes.reward, 0)
        found = jnp.unique(jnp.ravel(reward), size=2 * most, fill_value=0)
        old = jnp.any(found[:, None] == self.values[None], axis=1)
        new = ~old & (found != 0)
        place = self.known + jnp.cumsum(new, dtype=jnp.int32) - 1
        values = self.values.at[jnp.where(new, place, most)].set(found, mode="drop")
        known = jnp.minimum(self.known + jnp.sum(new, dtype=jnp.int32), most)
        return RewardClasses(values, known)

    def of(self, reward: Float[Array, "time batch"]) -> Int[Array, "time batch"]:
        """The class of each reward; -1 where it is 0, or no class is known."""
        apart = jnp.abs(reward[..., None] - self.values[None, None])
        numbers = jnp.arange(len(self.values), dtype=jnp.int32)
        apart = jnp.where((numbers < self.known)[None, None], apart, jnp.inf)
        nearest = jnp.argmin(apart, axis=-1).astype(jnp.int32)
        return jnp.where((reward == 0) | (self.known == 0), -1, nearest)


def later(x: Float[Array, "time *axes"]) -> Float[Array, "time *axes"]:
    """The sum over the steps after each one."""
    from_here_on = jnp.cumsum(x[::-1], axis=0)[::-1]
    return from_here_on - x


def chosen_steps(
    priority: Float[Array, "time batch"], possible: Bool[Array, "time batch"], most: int
) -> tuple[Int[Array, "chosen batch"], Bool[Array, "chosen batch"]]:
    """The times of the steps with the highest priority, and whether each of them is possible."""
    time, batch = priority.shape
    order = jnp.argsort(jnp.where(possible, -priority, jnp.inf), axis=0)[: min(most, time)]
    order = order.astype(jnp.int32)
    rows = jnp.arange(batch, dtype=jnp.int32)[None]
    return order, possible[order, rows]


def at_steps(
    x: Shaped[Array, "time batch *shape"], times: Int[Array, "chosen batch"]
) -> Shaped[Array, "chosen batch *shape"]:
    """The entries of the chosen steps of each episode."""
    return x[times, jnp.arange(times.shape[1], dtype=jnp.int32)[None]]


def most_rewarding(
    episodes: EpisodeBatch, most: int
) -> tuple[Int[Array, "chosen batch"], Bool[Array, "chosen batch"]]:
    """The times of the steps that paid most, and whether each of them paid at all."""
    size = jnp.abs(episodes.reward)
    return chosen_steps(size, episodes.valid & (size > 0), most)


def outcomes_of_classes(
    classes: RewardClasses, psi: Float[Array, "classes rank"], episodes: EpisodeBatch
) -> Outcomes:
    """Each class of rewards is one outcome: O(T * classes), whatever the number of pairs."""
    reward = jnp.where(episodes.valid, episodes.reward, 0)
    index = classes.of(reward)
    of_class = jax.nn.one_hot(index, len(classes.values), axis=1)
    return Outcomes(
        psi=jnp.broadcast_to(psi[:, None], (len(psi), reward.shape[1], psi.shape[1])),
        count=later(of_class),
        reward=later(of_class * reward[:, None]),
        index=index,
    )


def outcomes_of_steps(
    times: Int[Array, "chosen batch"],
    chosen: Bool[Array, "chosen batch"],
    psi: Float[Array, "chosen batch rank"],
    episodes: EpisodeBatch,
) -> Outcomes:
    """Each chosen step is one outcome: O(T * chosen)."""
    time, batch = episodes.reward.shape
    rows = jnp.arange(batch, dtype=jnp.int32)[None]
    after = (jnp.arange(time, dtype=jnp.int32)[:, None, None] < times[None]) & chosen[None]
    numbers = jnp.arange(len(times), dtype=jnp.int32)[:, None]
    index = jnp.full((time, batch), -1, jnp.int32)
    index = index.at[times, rows].set(jnp.where(chosen, numbers, -1))
    count = after.astype(jnp.float32)
    reward = jnp.broadcast_to(episodes.reward[times, rows][None], count.shape)
    return Outcomes(psi=psi, count=count, reward=count * reward, index=index)
