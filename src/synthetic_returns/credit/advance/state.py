"""What the method of advances has learned, and the two things that change it."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from synthetic_returns.agents.optimizers import clip_unusual, steady_adam
from synthetic_returns.credit.advance.evidence import Evidence
from synthetic_returns.credit.advance.model import AdvanceModel, Prediction
from synthetic_returns.credit.advance.parts import Part
from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.types import Key
from synthetic_returns.utils.averages import (
    explained_variance,
    masked_mean,
    suffix_average,
    tracked,
    unit_of,
)

__all__ = ["AdvanceState", "examine", "times", "train"]

LEAST_SPREAD = 1e-3  # of the mean square of returns
WEIGHT_DECAY = 1.0  # times the learning rate
MOST_TRUST = 2.0  # beyond that, claims and outcomes share a trend, and not a cause
APART = 4  # steps between points at which sums are compared
UNUSUAL = 3.0  # times the usual norm of a gradient: no more of it counts


class AdvanceState(eqx.Module):
    """The model and what it knows about its data. Rewards in it are in the environment's units.

    Attributes:
      model: c, b and the forecast, as they are trained.
      steady: a running mean of the model. It is what pays: every update moves the model by the luck
        of a few episodes, and an agent that is nearly perfect follows nothing else any more.
      optimizer: Adam's state.
      variance: running variance of the return to come; its root is the model's unit of reward.
      mean: running means of c and u, which count as no contribution.
      evidence: predictions of new episodes compared with their outcomes.
      at_end: the mean of what is left to be paid at the end of an episode.
      length: the mean number of transitions of an episode.
      updates: how many there were.
      stride: how many steps of the task lie between two states that are trained on.
      without: parts that are left out.
    """

    model: AdvanceModel
    steady: AdvanceModel
    optimizer: optax.OptState
    variance: Float[Array, ""]
    mean: Float[Array, "2"]
    evidence: Evidence
    at_end: Float[Array, ""]
    length: Float[Array, ""]
    updates: Int[Array, ""]
    stride: int = eqx.field(static=True)
    without: tuple[Part, ...] = eqx.field(static=True)

    @classmethod
    def init(
        cls,
        spec: EpisodeSpec,
        model: AdvanceModel,
        learning_rate: float,
        without: tuple[Part, ...] = (),
    ) -> "AdvanceState":
        """Nothing is known yet.

        Args:
          spec: of the episodes.
          model: with its parameters drawn.
          learning_rate: of Adam.
          without: parts to leave out.
        """
        optimizer = _optimizer(learning_rate, without)
        return cls(
            model=model,
            steady=model,
            optimizer=optimizer.init(eqx.filter(model, eqx.is_array)),
            variance=jnp.ones(()),
            mean=jnp.zeros(2),
            evidence=Evidence.init(claims=5),
            at_end=jnp.zeros(()),
            length=jnp.ones(()),
            updates=jnp.zeros((), jnp.int32),
            stride=spec.stride,
            without=without,
        )

    @property
    def scale(self) -> Float[Array, ""]:
        """The unit in which the model measures rewards."""
        return unit_of(self.variance)

    @property
    def trust(self) -> Float[Array, "3"]:
        """For c, u and the forecast: the expected outcome for each unit that they would pay.

        It is the slope of outcomes on gains, over single steps. Noise in a prediction adds to the
        gains but not to the outcomes, so it lowers the trust, however unpredictable the rest is.
        But this slope is too low for causes that happen once: the episodes that do not take the
        key at this step include those that took it before. So for c and u, which are paid at the
        cause, the slope on the sum of all gains so far counts if it is larger. It may be above 1: a
        regression on few, noisy returns finds out what matters before it knows how much.
        """
        slopes = self.evidence.slopes
        c, u, forecast = jnp.minimum(slopes[:3], 1)
        most = 1.0 if "calibration" in self.without else MOST_TRUST
        c_sum, u_sum = jnp.minimum(slopes[3:], most)
        trust = {
            "c": jnp.maximum(c, c_sum),
            "u": jnp.maximum(u, u_sum),
            "forecast": forecast,
        }
        if "trust" in self.without:
            trust = dict.fromkeys(trust, jnp.ones(()))
        return jnp.stack([0 * x if name in self.without else x for name, x in trust.items()])

    def gains(self, prediction: Prediction) -> Float[Array, "3 time batch"]:
        """What each transition adds to the potentials, in units of reward."""
        c_mean, u_mean = self.mean
        forecast = prediction.forecast
        return self.scale * jnp.stack(
            [prediction.c - c_mean, prediction.u - u_mean, forecast[1:] - forecast[:-1]]
        )

    def trusted(self, prediction: Prediction) -> Float[Array, "3 time batch"]:
        """The gains of all potentials, each times its trust."""
        return self.trust[:, None, None] * self.gains(prediction)

    def share(self, time: Int[Array, "states batch"]) -> Float[Array, "time batch"]:
        """The mean reward at the end, in equal parts over the mean length of an episode.

        Otherwise an agent that cannot see the end coming could not predict this reward, although it
        does not depend on the agent.

        Args:
          time: how long the episode of each state has lasted.
        """
        at_end = 0.0 if "share" in self.without else self.at_end
        length = jnp.maximum(self.length, 1)
        before = time[1:].astype(jnp.float32) <= length
        return jnp.where(before, at_end / length, 0)


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
    to_come = _to_come(episodes.reward)
    spread = masked_mean(jnp.square(to_come - masked_mean(to_come, valid)), valid)
    # Returns that hardly differ are no unit: rewards would be millions of it.
    spread = jnp.maximum(spread, LEAST_SPREAD * masked_mean(jnp.square(to_come), valid))
    variance = track(state.variance, spread)
    state = eqx.tree_at(lambda s: s.variance, state, variance)
    r = episodes.reward / state.scale

    points = _points(len(r), key)
    there = valid[points]

    def loss(model: AdvanceModel):
        prediction = model(episodes.observation, episodes.action, times(episodes), points)

        # The baseline b predicts the reward of a step from its state and action.
        b_loss = _episode_error(r, prediction.b, valid)
        b = jnp.where(valid, jax.lax.stop_gradient(prediction.b), 0)

        # Its residual is due to the past: at every point of an episode, the sum of c over the
        # states so far predicts the residuals to come. Episodes are compared with others of about
        # the same age: a better policy has better outcomes, which no state should get credit for.
        apart = functools.partial(_apart, valid=there)
        left_to_come = apart(_to_come(jnp.where(valid, r - b, 0))[points])
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

        # The forecast predicts the sum of later b.
        b_to_come = _to_come(b)[points]
        forecast_loss = masked_mean(jnp.square(b_to_come - prediction.forecast), there)

        mean = jnp.stack([c_mean, u_mean])
        total = b_loss + c_loss + u_loss + variance_loss + forecast_loss
        total += jnp.sum(jnp.square(mean))  # else nothing keeps the means in place
        metrics = {
            "explained_by_baseline": explained_variance(r, prediction.b, valid),
            "explained_by_past": explained_variance(left_to_come, explained, there),
            "explained_by_forecast": explained_variance(b_to_come, prediction.forecast, there),
            "contribution_std": state.scale
            * jnp.sqrt(masked_mean(jnp.square(prediction.c - c_mean), valid)),
        }
        return total, (mean, metrics)

    grads, (mean, metrics) = eqx.filter_grad(loss, has_aux=True)(state.model)
    parameters = eqx.filter(state.model, eqx.is_array)
    optimizer = _optimizer(learning_rate, state.without)
    updates, optimizer_state = optimizer.update(grads, state.optimizer, parameters)
    model = eqx.apply_updates(state.model, updates)
    averaged = functools.partial(suffix_average, count=state.updates)
    if "averaging" in state.without:
        averaged = _newest
    steady = jax.tree.map(
        lambda old, new: averaged(old, new) if eqx.is_array(new) else new, state.steady, model
    )
    return (
        eqx.tree_at(
            lambda s: (s.model, s.steady, s.optimizer, s.mean, s.updates),
            state,
            (
                model,
                steady,
                optimizer_state,
                averaged(state.mean, mean),
                state.updates + 1,
            ),
        ),
        metrics,
    )


def examine(state: AdvanceState, episodes: EpisodeBatch) -> AdvanceState:
    """Compares gains with outcomes on new episodes, before training on them."""
    valid = episodes.valid
    ends = _ends(valid)
    goes_on = valid & ~ends  # what is paid in advance is paid before the end
    prediction = state.steady(episodes.observation, episodes.action, times(episodes))
    reward = jnp.where(valid, episodes.reward, 0)
    left = jnp.where(valid, reward - state.scale * prediction.b, 0)
    gains = jnp.where(goes_on[None], state.gains(prediction), 0)
    sums = jnp.cumsum(gains[:2], axis=1)
    to_come, left_to_come = (_to_come(x) - x for x in (reward, left))
    # Before the first update neither the unit of reward nor the model means anything.
    evidence = state.evidence.with_episodes(
        jnp.concatenate([gains, sums]),
        jnp.stack([left_to_come, left_to_come, to_come, left_to_come, left_to_come]),
        goes_on,
        counts=state.updates > 0,
    )
    state = eqx.tree_at(lambda s: s.evidence, state, evidence)

    # What an episode is paid at its end: the last reward, less what it was advanced.
    number = jnp.sum(episodes.length > 0, dtype=jnp.float32)
    advanced = jnp.sum(jnp.where(goes_on, jnp.sum(state.trusted(prediction), axis=0), 0))
    at_end = (jnp.sum(jnp.where(ends, reward, 0)) - advanced) / jnp.maximum(number, 1)
    length = jnp.sum(episodes.length).astype(jnp.float32) / jnp.maximum(number, 1)
    rate = jnp.minimum(number / jnp.maximum(state.evidence.times[0], 1), 1)
    return eqx.tree_at(
        lambda s: (s.at_end, s.length),
        state,
        (
            state.at_end + rate * (at_end - state.at_end),
            state.length + rate * (length - state.length),
        ),
    )


def _newest(average: Array, value: Array) -> Array:
    """In place of an average."""
    del average
    return value


def _optimizer(learning_rate: float, without: tuple[Part, ...]) -> optax.GradientTransformation:
    """Adam with weight decay and gradient clipping.

    Many contributions explain one return, and b could fit noise: without weight decay they would
    overfit and leave nothing to each other. A single gradient of 20 times the usual size once
    silenced all of c for hundreds of updates.
    """
    return optax.chain(
        optax.identity() if "clipping" in without else clip_unusual(UNUSUAL),
        steady_adam(learning_rate, weight_decay=0.0 if "decay" in without else WEIGHT_DECAY),
    )


def _episode_error(
    r: Float[Array, "time batch"], b: Float[Array, "time batch"], valid: Bool[Array, "time batch"]
) -> Float[Array, ""]:
    """The squared errors of an episode, added up; the mean over the episodes.

    A mean over steps would fall as episodes grow longer, and with it the steps of an optimizer that
    divides by the largest gradients so far: where failing ends an episode, b would stop learning.
    """
    return jnp.mean(jnp.sum(jnp.where(valid, jnp.square(r - b), 0), axis=0))


def _sum_before(
    c: Float[Array, "time batch"], valid: Bool[Array, "time batch"]
) -> tuple[Float[Array, "time batch"], Float[Array, ""]]:
    """The sum over the transitions before each, less the mean; and the mean."""
    mean = masked_mean(c, valid)
    c = jnp.where(valid, c - mean, 0)
    return jnp.cumsum(c, axis=0) - c, mean


def _apart(
    x: Float[Array, "time batch"], valid: Bool[Array, "time batch"]
) -> Float[Array, "time batch"]:
    """The values minus their mean over the episodes of the batch that last that long."""
    count = jnp.maximum(jnp.sum(valid, axis=1, keepdims=True, dtype=jnp.float32), 1)
    mean = jnp.sum(jnp.where(valid, x, 0), axis=1, keepdims=True) / count
    return jnp.where(valid, x - mean, 0)


def times(episodes: EpisodeBatch) -> Int[Array, "states 1"]:
    """How long each state's episode has lasted: the same for all, as all begin together."""
    return jnp.arange(len(episodes.observation), dtype=jnp.int32)[:, None]


def _points(steps: int, key: Key) -> Int[Array, "points"]:
    """Evenly spaced points of an episode, with a random offset.

    The return-to-go hardly changes from one step to the next, so a few points say as much as all.
    """
    number = max(1, steps // APART)
    begin = jax.random.randint(key, (), 0, steps - APART * (number - 1))
    return begin + APART * jnp.arange(number, dtype=jnp.int32)


def _to_come(x: Float[Array, "time batch"]) -> Float[Array, "time batch"]:
    """The sum from each step on."""
    return jnp.cumsum(x[::-1], axis=0)[::-1]


def _ends(valid: Bool[Array, "time batch"]) -> Bool[Array, "time batch"]:
    """The last step of each episode."""
    return valid & ~jnp.concatenate([valid[1:], jnp.zeros_like(valid[:1])])
