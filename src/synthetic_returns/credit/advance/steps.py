"""Sums and masks over the steps of episodes, for the regressions and for the evidence."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from synthetic_returns.credit.advance.model import Prediction
from synthetic_returns.credit.data.episode import EpisodeBatch

__all__ = [
    "last_steps",
    "prevented",
    "sum_reached",
    "sum_so_far",
    "sum_to_come",
    "terminations",
    "times",
]


def times(episodes: EpisodeBatch) -> Int[Array, "states 1"]:
    """How long each state's episode has lasted: the same for all, as all begin together."""
    return jnp.arange(len(episodes.observation), dtype=jnp.int32)[:, None]


def sum_to_come(x: Float[Array, "time batch"]) -> Float[Array, "time batch"]:
    """The sum from each step on."""
    return _running_sum(x, reverse=True)


def sum_so_far(x: Float[Array, "time *batch"]) -> Float[Array, "time *batch"]:
    """The sum up to each step, which is included."""
    return _running_sum(x)


def sum_reached(
    b: Float[Array, "time batch"], ending: Float[Array, "time batch"]
) -> Float[Array, "time batch"]:
    """The sum of b after each step, as far as the episode was expected to get there.

    after_t = b_{t+1} + (1 - p_{t+1}) after_{t+1}, with p = sigmoid(ending). Who pushes against a
    closed door looks like somebody with the key, so that b promises the reward at every push. But
    an end prevents it only once.

    Args:
      b: the expected reward of each step, 0 after the end.
      ending: the logit that each step ends the episode.
    """
    goes_on = jax.nn.sigmoid(-ending)

    def before(after: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        b_t, goes_on_t = step
        return b_t + goes_on_t * after, after

    _, after = jax.lax.scan(before, jnp.zeros_like(b[0]), (b, goes_on), reverse=True)
    return after


def _running_sum(
    x: Float[Array, "time *batch"], *, reverse: bool = False
) -> Float[Array, "time *batch"]:
    """A cumulative sum, step by step: XLA's own takes twice as long to compile on a CPU."""

    def add(total: Array, x_t: Array) -> tuple[Array, Array]:
        total = total + x_t
        return total, total

    return jax.lax.scan(add, jnp.zeros_like(x[0]), x, reverse=reverse)[1]


def last_steps(valid: Bool[Array, "time batch"]) -> Bool[Array, "time batch"]:
    """The last step of each episode."""
    return valid & ~jnp.concatenate([valid[1:], jnp.zeros_like(valid[:1])])


def terminations(episodes: EpisodeBatch) -> Float[Array, "time batch"]:
    """1 where an episode ends by itself and is not cut off by a time limit, else 0."""
    return (last_steps(episodes.valid) & (episodes.discount == 0)).astype(jnp.float32)


def prevented(
    prediction: Prediction, ended: Float[Array, "time batch"]
) -> Float[Array, "time batch"]:
    """What the past gets credit for because it makes an episode end, or go on.

    An end prevents the rewards that b would have explained after it. As far as its state and action
    let one expect the end, nothing before them had a part in it.

    Args:
      prediction: in standardised rewards.
      ended: 1 where an episode terminated.
    """
    return (jax.nn.sigmoid(prediction.ending) - ended) * prediction.after
