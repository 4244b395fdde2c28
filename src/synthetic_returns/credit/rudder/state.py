"""What RUDDER has learned, and the two things that change it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from synthetic_returns.agents.optimizers import steady_adam
from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.credit.episodic.state import return_over
from synthetic_returns.credit.rudder.model import Forecast, ReturnModel
from synthetic_returns.utils.averages import explained_variance, masked_mean, tracked, unit_of

__all__ = ["RudderState", "examine", "forecast", "losses", "targets", "train"]


class RudderState(eqx.Module):
    """The model and what it knows about its data. Rewards in it are in the environment's units.

    Attributes:
      model: the LSTM.
      optimizer: Adam's state.
      mean: running mean of the return of an episode.
      variance: running variance of it; its root is the model's unit of reward.
      missed: running mean of the squared errors at the end of new episodes, before they were
        trained on.
      at_stake: running mean of how far their returns were from the usual one, squared.
      usually_at_stake: the same over a share of all time.
      updates: how many there were.
      examined: how many batches of new episodes were compared with predictions.
    """

    model: ReturnModel
    optimizer: optax.OptState
    mean: Float[Array, ""]
    variance: Float[Array, ""]
    missed: Float[Array, ""]
    at_stake: Float[Array, ""]
    usually_at_stake: Float[Array, ""]
    updates: Int[Array, ""]
    examined: Int[Array, ""]

    @classmethod
    def init(cls, model: ReturnModel, learning_rate: float) -> "RudderState":
        """Nothing is known yet."""
        zero, none = jnp.zeros(()), jnp.zeros((), jnp.int32)
        optimizer = steady_adam(learning_rate).init(eqx.filter(model, eqx.is_array))
        return cls(model, optimizer, zero, jnp.ones(()), zero, zero, zero, none, none)

    @property
    def scale(self) -> Float[Array, ""]:
        """The unit in which the model measures rewards."""
        return unit_of(self.variance)

    @property
    def quality(self) -> Float[Array, ""]:
        """The share of the variance of new returns that is explained at the end, in [0, 1]."""
        return jnp.clip((self.at_stake - self.missed) / jnp.maximum(self.at_stake, 1e-12), 0, 1)


def forecast(model: ReturnModel, episodes: EpisodeBatch) -> tuple[Forecast, Forecast]:
    """The predictions before and after every transition of whole episodes."""
    steps, batch = episodes.reward.shape
    time = jnp.broadcast_to(jnp.arange(steps, dtype=jnp.int32)[:, None], (steps, batch))
    memory = jnp.zeros((batch, model.gate.out_features))  # pyright: ignore
    before, after, _ = model(episodes.observation, episodes.action, time, time == 0, memory)
    return before, after


def targets(state: RudderState, episodes: EpisodeBatch, soon: int) -> Forecast:
    """What the model should have said after every transition.

    Args:
      state: whose units rewards are measured in.
      episodes: a batch of whole episodes.
      soon: how many of the next rewards are predicted.
    """
    reward = episodes.reward / state.scale
    whole = (jnp.sum(episodes.reward, axis=0) - state.mean) / state.scale
    following = return_over(reward, soon)
    return Forecast(
        whole=jnp.broadcast_to(whole, reward.shape),
        so_far=jnp.cumsum(reward, axis=0),
        soon=jnp.concatenate([following[1:], jnp.zeros_like(following[:1])]),
    )


def losses(
    said: Forecast, target: Forecast, episodes: EpisodeBatch
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The main loss, and the sum of the auxiliary ones."""
    valid = episodes.valid
    errors = jax.tree.map(lambda x, y: jnp.square(x - y), target, said)
    # The main task: the return, once the episode is over.
    main = masked_mean(errors.whole, _ends(episodes))
    # Continuous prediction: the same after every transition, so that it is known early; and the
    # paper's two other tasks, which bring the gradients of single rewards.
    auxiliary = sum(masked_mean(x, valid) for x in (errors.whole, errors.so_far, errors.soon))
    return main, jnp.asarray(auxiliary)


def train(
    state: RudderState,
    episodes: EpisodeBatch,
    *,
    learning_rate: float,
    auxiliary_cost: float,
    auxiliary_steps: int,
) -> tuple[RudderState, dict[str, Float[Array, ""]]]:
    """One update on a batch of episodes."""
    returns = jnp.sum(episodes.reward, axis=0)
    mean = tracked(state.mean, jnp.mean(returns), state.updates)
    variance = tracked(state.variance, jnp.mean(jnp.square(returns - mean)), state.updates)
    state = eqx.tree_at(lambda s: (s.mean, s.variance), state, (mean, variance))
    target = targets(state, episodes, auxiliary_steps)

    def loss(model: ReturnModel):
        _, said = forecast(model, episodes)
        main, auxiliary = losses(said, target, episodes)
        return main + auxiliary_cost * auxiliary, (main, said)

    grads, (main, said) = eqx.filter_grad(loss, has_aux=True)(state.model)
    updates, optimizer = steady_adam(learning_rate).update(grads, state.optimizer)
    metrics = {
        "error": main,
        "explained_return": explained_variance(target.whole, said.whole, _ends(episodes)),
        "explained_everywhere": explained_variance(target.whole, said.whole, episodes.valid),
    }
    return (
        eqx.tree_at(
            lambda s: (s.model, s.optimizer, s.updates),
            state,
            (eqx.apply_updates(state.model, updates), optimizer, state.updates + 1),
        ),
        metrics,
    )


def examine(state: RudderState, episodes: EpisodeBatch) -> RudderState:
    """Compares the predictions at the end of episodes not yet trained on with their returns."""
    ends, there = _ends(episodes), episodes.length > 0
    _, after = forecast(state.model, episodes)
    returns = jnp.sum(episodes.reward, axis=0)
    predicted = state.mean + state.scale * jnp.sum(jnp.where(ends, after.whole, 0), axis=0)
    missed = masked_mean(jnp.square(returns - predicted), there)
    at_stake = masked_mean(jnp.square(returns - state.mean), there)

    # Before the first update neither the unit of reward nor the model means anything. After that,
    # episodes count by how unusual their returns were: those that all end alike say nothing.
    began = state.updates > 0
    share = jnp.where(began, 2 / (state.examined + 2), 0)  # averages over a share of all time
    usually = state.usually_at_stake + share * (at_stake - state.usually_at_stake)
    news = jnp.where(began, jnp.minimum(at_stake / jnp.maximum(usually, 1e-12), 1), 0)

    def learned(average: Float[Array, ""], value: Float[Array, ""]) -> Float[Array, ""]:
        return average + news * (tracked(average, value, state.examined) - average)

    return eqx.tree_at(
        lambda s: (s.missed, s.at_stake, s.usually_at_stake, s.examined),
        state,
        (
            learned(state.missed, missed),
            learned(state.at_stake, at_stake),
            usually,
            state.examined + began.astype(jnp.int32),
        ),
    )


def _ends(episodes: EpisodeBatch) -> Bool[Array, "time batch"]:
    """The last step of each episode."""
    time = jnp.arange(episodes.reward.shape[0], dtype=jnp.int32)
    return time[:, None] == episodes.length[None] - 1
