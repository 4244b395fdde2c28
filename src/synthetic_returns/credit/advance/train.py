"""The regressions of the method of advances: one update on a batch of episodes."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from synthetic_returns.credit.advance.model import AdvanceModel
from synthetic_returns.credit.advance.state import AdvanceState, optimizer_of
from synthetic_returns.credit.advance.steps import (
    last_steps,
    prevented,
    sum_reached,
    sum_so_far,
    sum_to_come,
    terminations,
    times,
)
from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.types import Key
from synthetic_returns.utils.averages import (
    explained_variance,
    masked_mean,
    suffix_average,
    tracked,
)

__all__ = ["APART", "train"]

LEAST_SPREAD = 1e-3  # of the mean square of returns
APART = 4  # steps between points at which sums are compared


def train(
    state: AdvanceState, episodes: EpisodeBatch, learning_rate: float, key: Key
) -> tuple[AdvanceState, dict[str, Float[Array, ""]]]:
    """One update on a batch of episodes.

    Args:
      state: what was learned.
      episodes: the batch.
      learning_rate: of Adam.
      key: draws the points at which the sums are compared; consumed here.
    """
    valid = episodes.valid
    track = functools.partial(tracked, count=state.updates)
    to_come = sum_to_come(episodes.reward)
    spread = masked_mean(jnp.square(to_come - masked_mean(to_come, valid)), valid)
    # Returns that hardly differ are no unit: rewards would be millions of it.
    spread = jnp.maximum(spread, LEAST_SPREAD * masked_mean(jnp.square(to_come), valid))
    variance = track(state.variance, spread)
    state = eqx.tree_at(lambda s: s.variance, state, variance)
    r = episodes.reward / state.scale

    points = _points(len(r), key)
    there = valid[points]

    def loss(parameters: AdvanceModel):
        model = eqx.combine(parameters, state.rest)
        prediction = model(episodes.observation, episodes.action, times(episodes), points)

        # The baseline b predicts the reward of a step from its state and action. Like all that
        # follows, it compares episodes with others of about the same age: a better policy is in
        # other states and has better outcomes, which no state should get credit for.
        compared = functools.partial(_compared, whole="usual" in state.without)
        b_loss = _per_episode(compared(r - prediction.b, prediction.usual_b, valid), valid)
        b = jnp.where(valid, jax.lax.stop_gradient(prediction.b), 0)

        # b explains rewards of steps that are reached. An end prevents those of all later steps.
        ended = terminations(episodes)
        surprise = optax.sigmoid_binary_cross_entropy(prediction.ending, ended)
        ending_loss = _per_episode(surprise, valid)
        expected = b
        if "ending" not in state.without:
            expected -= jnp.where(valid, jax.lax.stop_gradient(prevented(prediction, ended)), 0)
        residual = r - expected

        # The residual is due to the past: at every point of an episode, the sum of c over the
        # states so far predicts the residuals to come.
        apart = functools.partial(_apart, valid=there)
        left_to_come = apart(sum_to_come(jnp.where(valid, residual, 0))[points])
        c_sum_tm1, c_mean = _sum_before(prediction.c, valid)
        explained = apart(c_sum_tm1[points])
        error = left_to_come - explained
        # Errors at successive points share their future, so certain points count all the more.
        sure = jax.lax.stop_gradient(prediction.variance) ** -2
        if "certainty" in state.without:
            sure = jnp.ones_like(sure)
        sure = sure / masked_mean(sure, there)
        c_loss = masked_mean(sure * jnp.square(error), there)
        square = jax.lax.stop_gradient(jnp.square(error))
        variance_loss = masked_mean(
            jnp.log(prediction.variance) + square / prediction.variance, there
        )

        # u predicts what c leaves, from actions that no state shows.
        u_sum_tm1, u_mean = _sum_before(prediction.u, valid)
        left_by_c = jax.lax.stop_gradient(error) - apart(u_sum_tm1[points])
        u_loss = masked_mean(sure * jnp.square(left_by_c), there)

        # The forecast predicts the rest of the return: the sum of what will then be expected.
        expected_to_come = sum_to_come(expected)[points]
        missed = compared(expected_to_come - prediction.forecast, prediction.usual_forecast, there)
        forecast_loss = masked_mean(missed, there)
        # The sum after steps that did not end the episode. It matters where an end is likely.
        ending = jax.lax.stop_gradient(prediction.ending)
        after_error = jnp.square(sum_reached(b, ending) - prediction.after)
        after_error *= jax.nn.sigmoid(ending)
        after_loss = _per_episode(after_error, valid & ~last_steps(valid))

        mean = jnp.stack([c_mean, u_mean])
        total = b_loss + c_loss + u_loss + variance_loss + forecast_loss + ending_loss + after_loss
        total += jnp.sum(jnp.square(mean))  # else nothing keeps the means in place
        returns = apart(to_come[points]) / state.scale
        at_stake = jnp.square(state.scale) * jnp.stack(
            [masked_mean(jnp.square(x), there) for x in (left_to_come, error, returns)]
        )
        metrics = {
            "explained_by_baseline": explained_variance(r, prediction.b, valid),
            "explained_by_past": explained_variance(left_to_come, explained, there),
            "explained_by_forecast": explained_variance(
                expected_to_come, prediction.forecast, there
            ),
            "contribution_std": state.scale
            * jnp.sqrt(masked_mean(jnp.square(prediction.c - c_mean), valid)),
        }
        return total, (mean, at_stake, metrics)

    grads, (mean, at_stake, metrics) = jax.grad(loss, has_aux=True)(state.trained.opened())
    optimizer: Any = optimizer_of(learning_rate, state.without)
    gradient = state.trained.like(grads)
    updates, optimizer_state = optimizer.update(gradient, state.optimizer, state.trained)
    trained = eqx.apply_updates(state.trained, updates)
    average = _newest if "averaging" in state.without else suffix_average
    averaged = functools.partial(average, count=state.updates)
    return (
        eqx.tree_at(
            lambda s: (s.trained, s.averaged, s.optimizer, s.mean, s.at_stake, s.updates),
            state,
            (
                trained,
                jax.tree.map(averaged, state.averaged, trained),
                optimizer_state,
                averaged(state.mean, mean),
                track(state.at_stake, jnp.stack([at_stake, jnp.square(at_stake)])),
                state.updates + 1,
            ),
        ),
        metrics,
    )


def _per_episode(
    error: Float[Array, "time batch"], valid: Bool[Array, "time batch"]
) -> Float[Array, ""]:
    """The errors of an episode, added up; the mean over the episodes.

    A mean over steps would fall as episodes grow longer, and with it the steps of an optimizer that
    divides by the largest gradients so far: where failing ends an episode, b would stop learning.
    """
    return jnp.mean(jnp.sum(jnp.where(valid, error, 0), axis=0))


def _sum_before(
    c: Float[Array, "time batch"], valid: Bool[Array, "time batch"]
) -> tuple[Float[Array, "time batch"], Float[Array, ""]]:
    """The sum over the transitions before each, less the mean; and the mean."""
    mean = masked_mean(c, valid)
    c = jnp.where(valid, c - mean, 0)
    return sum_so_far(c) - c, mean


def _apart(
    x: Float[Array, "time batch"], valid: Bool[Array, "time batch"]
) -> Float[Array, "time batch"]:
    """The values minus their mean over the episodes of the batch that last that long."""
    count = jnp.maximum(jnp.sum(valid, axis=1, keepdims=True, dtype=jnp.float32), 1)
    mean = jnp.sum(jnp.where(valid, x, 0), axis=1, keepdims=True) / count
    return jnp.where(valid, x - mean, 0)


def _compared(
    error: Float[Array, "time batch"],
    usual: Float[Array, "time batch_or_one"],
    valid: Bool[Array, "time batch"],
    *,
    whole: bool,
) -> Float[Array, "time batch"]:
    """The squared errors of what is learned from differences, and those of what is usual.

    What the episodes of a batch have in common at a time is left to ``usual``, so that no state is
    made to explain it: 40 balls that are caught would outweigh the last one by far.

    Args:
      error: of a prediction that has ``usual`` in it, but passes no gradient on to it.
      usual: what the time alone tells.
      valid: the entries that count.
      whole: the prediction answers for its whole error.
    """
    own = jnp.square(error if whole else _apart(error, valid))
    return own + jnp.square(jax.lax.stop_gradient(error + usual) - usual)


def _points(steps: int, key: Key) -> Int[Array, "points"]:
    """Evenly spaced points of an episode, with a random offset.

    The return-to-go hardly changes from one step to the next, so a few points say as much as all.
    """
    number = max(1, steps // APART)
    begin = jax.random.randint(key, (), 0, steps - APART * (number - 1))
    return begin + APART * jnp.arange(number, dtype=jnp.int32)


def _newest(average: Array, value: Array, count: Array) -> Array:
    """In place of an average."""
    del average, count
    return value
