"""What the method of advances has learned, and the two things that change it."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from synthetic_returns.agents.optimizers import steady_adam
from synthetic_returns.credit.advance.model import AdvanceModel, Prediction
from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.utils.averages import explained_variance, masked_mean, tracked

__all__ = ["AdvanceState", "examine", "train"]

WINDOW = 128  # episodes that say what is usual now; the policy changes


class AdvanceState(eqx.Module):
    """The model and what it knows about its data. Rewards in it are in the environment's units.

    Attributes:
      model: c, b and the forecast.
      optimizer: Adam's state.
      variance: running variance of the return to come; its root is the model's unit of reward.
      c_mean: running mean of c, which counts as no contribution.
      usual: by time step, the running means of the gains of the two potentials, and of the
        outcomes that these are compared with.
      times: how many episodes lasted so long, at most ``WINDOW``.
      evidence: for each potential, running means of gain * outcome and of gain squared, on
        episodes before they were trained on; their ratio is the trust.
      at_stake: for each, the mean square of the outcome over a share of all time.
      at_end: the mean of what is left to be paid at the end of an episode.
      length: the mean number of transitions of an episode.
      updates: how many there were.
      examined: how many batches of new episodes were compared with predictions.
      stride: how many steps of the task lie between two states that are trained on.
    """

    model: AdvanceModel
    optimizer: optax.OptState
    variance: Float[Array, ""]
    c_mean: Float[Array, ""]
    usual: Float[Array, "4 steps"]
    times: Float[Array, "steps"]
    evidence: Float[Array, "2 2"]
    at_stake: Float[Array, "2"]
    at_end: Float[Array, ""]
    length: Float[Array, ""]
    updates: Int[Array, ""]
    examined: Int[Array, ""]
    stride: int = eqx.field(static=True)

    @classmethod
    def init(cls, spec: EpisodeSpec, model: AdvanceModel, learning_rate: float) -> "AdvanceState":
        """Nothing is known yet.

        Args:
          spec: of the episodes.
          model: with its parameters drawn.
          learning_rate: of Adam.
        """
        return cls(
            model=model,
            optimizer=steady_adam(learning_rate).init(eqx.filter(model, eqx.is_array)),
            variance=jnp.ones(()),
            c_mean=jnp.zeros(()),
            usual=jnp.zeros((4, spec.max_steps)),
            times=jnp.zeros(spec.max_steps),
            evidence=jnp.zeros((2, 2)),
            at_stake=jnp.zeros(2),
            at_end=jnp.zeros(()),
            length=jnp.ones(()),
            updates=jnp.zeros((), jnp.int32),
            examined=jnp.zeros((), jnp.int32),
            stride=spec.stride,
        )

    @property
    def scale(self) -> Float[Array, ""]:
        """The unit in which the model measures rewards."""
        return jnp.sqrt(jnp.maximum(self.variance, 1e-12))

    @property
    def trust(self) -> Float[Array, "2"]:
        """For c and for the forecast: the share of what they pay that comes true, in [0, 1].

        It is the slope of what came on what was paid, over single steps. Noise in a prediction
        adds to its gains and not to what comes, so that it lowers the trust, however much else is
        unpredictable.
        """
        gains = jnp.maximum(self.evidence[:, 1], 1e-12)
        return jnp.clip(self.evidence[:, 0] / gains, 0, 1)

    def gains(self, prediction: Prediction) -> Float[Array, "2 time batch"]:
        """What each transition adds to the two potentials, in units of reward."""
        forecast = prediction.forecast
        gains = jnp.stack([prediction.c - self.c_mean, forecast[1:] - forecast[:-1]])
        return self.scale * gains

    def trusted(self, prediction: Prediction) -> Float[Array, "2 time batch"]:
        """The gains of both potentials, each as far as it is trusted."""
        return self.trust[:, None, None] * self.gains(prediction)

    def share(self, time: Int[Array, "states batch"]) -> Float[Array, "time batch"]:
        """What usually comes at the end, in equal parts over the usual length of an episode.

        A reward that comes whatever is done would else be a surprise to every agent that cannot
        see the end coming.

        Args:
          time: how long the episode of each state has lasted.
        """
        length = jnp.maximum(self.length, 1)
        before = time[1:].astype(jnp.float32) <= length
        return jnp.where(before, self.at_end / length, 0)


def train(
    state: AdvanceState, episodes: EpisodeBatch, learning_rate: float
) -> tuple[AdvanceState, dict[str, Float[Array, ""]]]:
    """One update on a batch of episodes."""
    valid = episodes.valid
    track = functools.partial(tracked, count=state.updates)
    to_come = _to_come(episodes.reward)
    spread = masked_mean(jnp.square(to_come - masked_mean(to_come, valid)), valid)
    variance = track(state.variance, spread)
    state = eqx.tree_at(lambda s: s.variance, state, variance)
    r = episodes.reward / state.scale

    def loss(model: AdvanceModel):
        prediction = model(episodes.observation, episodes.action, _time(episodes))

        # b explains what a state and an action say about their own reward.
        b_loss = masked_mean(jnp.square(r - prediction.b), valid)
        b = jnp.where(valid, jax.lax.stop_gradient(prediction.b), 0)

        # What it leaves is the doing of the past: at every point of an episode, the sum of c over
        # the transitions so far is to be what is left to come, the surer points first.
        left_to_come = _to_come(jnp.where(valid, r - b, 0))
        c_mean = masked_mean(prediction.c, valid)
        c = jnp.where(valid, prediction.c - c_mean, 0)
        c_sum_tm1 = jnp.cumsum(c, axis=0) - c
        error = jnp.square(left_to_come - c_sum_tm1)
        sure = 1 / jax.lax.stop_gradient(prediction.variance)
        c_loss = masked_mean(sure * error, valid)
        variance_loss = masked_mean(
            jnp.log(prediction.variance) + jax.lax.stop_gradient(error) / prediction.variance, valid
        )

        # What b is going to explain can be foretold from here.
        b_to_come = _to_come(b)
        forecast = prediction.forecast[:-1]
        forecast_loss = masked_mean(jnp.square(b_to_come - forecast), valid)

        total = b_loss + c_loss + variance_loss + forecast_loss
        total += jnp.square(c_mean)  # else nothing keeps the mean of c in place
        metrics = {
            "explained_by_baseline": explained_variance(r, prediction.b, valid),
            "explained_by_past": explained_variance(left_to_come, c_sum_tm1, valid),
            "explained_by_forecast": explained_variance(b_to_come, forecast, valid),
            "contribution_std": state.scale * jnp.sqrt(masked_mean(jnp.square(c), valid)),
        }
        return total, (c_mean, metrics)

    grads, (c_mean, metrics) = eqx.filter_grad(loss, has_aux=True)(state.model)
    updates, optimizer = steady_adam(learning_rate).update(grads, state.optimizer)
    return (
        eqx.tree_at(
            lambda s: (s.model, s.optimizer, s.c_mean, s.updates),
            state,
            (
                eqx.apply_updates(state.model, updates),
                optimizer,
                track(state.c_mean, c_mean),
                state.updates + 1,
            ),
        ),
        metrics,
    )


def examine(state: AdvanceState, episodes: EpisodeBatch) -> AdvanceState:
    """Compares what would have been paid with what came, in episodes not yet trained on."""
    valid = episodes.valid
    ends = _ends(valid)
    goes_on = valid & ~ends  # what is paid in advance is paid before the end
    prediction = state.model(episodes.observation, episodes.action, _time(episodes))
    reward = jnp.where(valid, episodes.reward, 0)
    left = jnp.where(valid, reward - state.scale * prediction.b, 0)
    gains = jnp.where(goes_on[None], state.gains(prediction), 0)
    outcomes = jnp.stack([_to_come(x) - x for x in (left, reward)])
    outcomes = jnp.where(goes_on[None], outcomes, 0)

    # What is usual at a time says nothing about what was done.
    lasted = jnp.sum(goes_on, axis=1, dtype=jnp.float32)
    here = len(lasted)
    times = jnp.minimum(state.times[:here] + lasted, WINDOW)
    seen = jnp.concatenate([gains, outcomes])
    mean = jnp.sum(seen, axis=2) / jnp.maximum(lasted, 1)[None]
    rate = jnp.minimum(lasted / jnp.maximum(times, 1), 1)[None]
    usual = state.usual[:, :here] + rate * (mean - state.usual[:, :here])
    gains, outcomes = jnp.split(jnp.where(goes_on[None], seen - usual[:, :, None], 0), 2)

    steps = jnp.maximum(jnp.sum(goes_on, dtype=jnp.float32), 1)
    products = jnp.stack([gains * outcomes, jnp.square(gains)], axis=1)
    found = jnp.sum(products, axis=(2, 3)) / steps
    at_stake = jnp.sum(jnp.square(outcomes), axis=(1, 2)) / steps

    # Before the first update neither the unit of reward nor the model means anything. After that,
    # episodes count by how much there was to predict: those of a policy that makes no mistakes
    # leave nothing, and say nothing against the model.
    began = state.updates > 0
    share = jnp.where(began, 2 / (state.examined + 2), 0)  # averages over a share of all time
    usually = state.at_stake + share * (at_stake - state.at_stake)
    news = jnp.where(began, jnp.minimum(at_stake / jnp.maximum(usually, 1e-12), 1), 0)
    evidence = tracked(state.evidence, found, state.examined)
    evidence = state.evidence + news[:, None] * (evidence - state.evidence)
    state = eqx.tree_at(
        lambda s: (s.usual, s.times, s.evidence, s.at_stake, s.examined),
        state,
        (
            state.usual.at[:, :here].set(usual),
            state.times.at[:here].set(times),
            evidence,
            usually,
            state.examined + began.astype(jnp.int32),
        ),
    )

    # What an episode is paid at its end: the last reward, less what it was advanced.
    number = jnp.sum(episodes.length > 0, dtype=jnp.float32)
    advanced = jnp.sum(jnp.where(goes_on, jnp.sum(state.trusted(prediction), axis=0), 0))
    at_end = (jnp.sum(jnp.where(ends, reward, 0)) - advanced) / jnp.maximum(number, 1)
    length = jnp.sum(episodes.length).astype(jnp.float32) / jnp.maximum(number, 1)
    rate = jnp.minimum(number / jnp.maximum(jnp.minimum(state.times[0], WINDOW), 1), 1)
    return eqx.tree_at(
        lambda s: (s.at_end, s.length),
        state,
        (
            state.at_end + rate * (at_end - state.at_end),
            state.length + rate * (length - state.length),
        ),
    )


def _time(episodes: EpisodeBatch) -> Int[Array, "states batch"]:
    states, batch = episodes.observation.shape[:2]
    return jnp.broadcast_to(jnp.arange(states, dtype=jnp.int32)[:, None], (states, batch))


def _to_come(x: Float[Array, "time batch"]) -> Float[Array, "time batch"]:
    """The sum from each step on."""
    return jnp.cumsum(x[::-1], axis=0)[::-1]


def _ends(valid: Bool[Array, "time batch"]) -> Bool[Array, "time batch"]:
    """The last step of each episode."""
    return valid & ~jnp.concatenate([valid[1:], jnp.zeros_like(valid[:1])])
