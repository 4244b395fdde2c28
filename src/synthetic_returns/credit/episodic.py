"""The episodic learner: give it finished episodes, ask it for contributions."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Shaped

from synthetic_returns.averages import explained_variance, masked_mean
from synthetic_returns.credit.episodes import Episode, EpisodeBuffer, bucket
from synthetic_returns.credit.episodic_model import EpisodicModel
from synthetic_returns.credit.explanation import Explanation
from synthetic_returns.credit.options import EpisodicOptions
from synthetic_returns.optimizers import adam
from synthetic_returns.types import Key

__all__ = ["EpisodicLearner", "EpisodicState"]

RATE = 0.02  # of the running averages, per update
SMALL = 0.1  # a contribution, in standardised rewards, that the cost of sparsity is meant for


class EpisodicState(eqx.Module):
    """The model and what it knows about its data.

    Attributes:
      model: c, g and b.
      optimizer: Adam's state.
      reward_mean: running mean of the rewards.
      reward_square: running mean of their squares.
      c_mean: running mean of c.
      c_rest: running median of c: the contribution of an ordinary state, which counts as none.
      gate_scale: running maximum of the variance that b leaves; where the gate is fully open.
      updates: how many there were.
      examined: how many batches of new episodes were compared with predictions.
      evidence: running means of prediction * residual and of prediction squared, on episodes
        before they were trained on; their ratio is the trust.
      at_stake: mean of what there was to predict where the gate was open, over a share of all time.
    """

    model: EpisodicModel
    optimizer: optax.OptState
    reward_mean: Float[Array, ""]
    reward_square: Float[Array, ""]
    c_mean: Float[Array, ""]
    c_rest: Float[Array, ""]
    gate_scale: Float[Array, ""]
    updates: Int[Array, ""]
    examined: Int[Array, ""]
    evidence: Float[Array, "2"]
    at_stake: Float[Array, ""]

    @property
    def reward_scale(self) -> Float[Array, ""]:
        """The unit in which the model measures rewards."""
        if not self.model.options.standardise:
            return jnp.ones(())
        return jnp.sqrt(jnp.maximum(self.reward_square - jnp.square(self.reward_mean), 1e-6))

    def standardised(self, reward: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """Rewards in the model's units."""
        if not self.model.options.standardise:
            return reward
        return (reward - self.reward_mean) / self.reward_scale

    @property
    def trust(self) -> Float[Array, ""]:
        """The factor in [0, 1] by which predictions on new episodes have to be shrunk to be best.

        It is the slope of the regression of the residual on the prediction: 0 for predictions
        that are noise, 1 for true ones, however much else is unpredictable.
        """
        if not self.model.options.trust:
            return jnp.ones(())
        slope = self.evidence[0] / jnp.maximum(self.evidence[1], 1e-12)
        return jnp.clip(slope, 0, 1)

    def explain(
        self,
        observation: Shaped[Array, "time batch *observation"],
        valid: Bool[Array, "time batch"],
    ) -> Explanation:
        """What the model says about every step of a batch of episodes."""
        prediction = self.model.predict(observation, valid, self.gate_scale, self.c_mean)
        mean = self.reward_mean if self.model.options.standardise else jnp.zeros(())
        b = prediction.b * self.reward_scale + mean
        return Explanation(
            c=self.contribution(observation),
            g=prediction.g,
            b=b,
            r_hat=b + prediction.memory * self.reward_scale,
        )

    def contribution(self, observation: Shaped[Array, "*shape"]) -> Float[Array, "*batch"]:
        """The synthetic return of each state, in units of reward, scaled by trust."""
        c = self.model.contribution(observation)
        if self.model.options.centred:
            c = c - self.c_rest
        return jax.lax.stop_gradient(c * self.reward_scale * self.trust)


class EpisodicLearner:
    """Learns contributions from finished episodes; knows nothing of the agent that made them.

    The interface of a credit method: ``learn`` takes finished episodes, ``contributions`` gives
    the synthetic return of any states.
    """

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        longest: int,
        options: EpisodicOptions,
        *,
        key: Key,
        dtype: Any = np.float32,
        encoder: Callable[[Array], Array] | None = None,
    ):
        """Draws the parameters and reserves the buffer.

        Args:
          observation_shape: shape of one observation.
          longest: the largest number of states with a successor in an episode.
          options: the choices.
          key: consumed here.
          dtype: how observations are kept.
          encoder: instead of the one that the options describe; see ``EpisodicModel``.
        """
        model_key, sample_key = jax.random.split(key)
        # A copy, because updates are made in place and the encoder is the caller's.
        encoder = jax.tree.map(lambda x: jnp.array(x) if eqx.is_array(x) else x, encoder)
        model = EpisodicModel(
            observation_shape, longest, options, key=model_key, encoder=encoder, dtype=dtype
        )
        optimizer = adam(options.learning_rate).init(eqx.filter(model, eqx.is_array))
        self.options = options
        self.state = EpisodicState(
            model=model,
            optimizer=optimizer,
            reward_mean=jnp.zeros(()),
            reward_square=jnp.ones(()),
            c_mean=jnp.zeros(()),
            c_rest=jnp.zeros(()),
            gate_scale=jnp.ones(()),
            updates=jnp.zeros((), jnp.int32),
            examined=jnp.zeros((), jnp.int32),
            evidence=jnp.zeros(2),
            at_stake=jnp.zeros(()),
        )
        self.buffer = EpisodeBuffer(observation_shape, dtype, options.slots, longest)
        self.seed = int(jax.random.randint(sample_key, (), 0, 2**31 - 1))
        self.updates_owed = 0.0
        self.metrics: dict[str, Float[Array, ""]] = {}

    def learn(self, episodes: Iterable[Episode]) -> None:
        """Takes in finished episodes, and trains as often as they are worth."""
        episodes = list(episodes)
        if not episodes:
            return
        self.state = _examine(self.state, *_padded(episodes, self.buffer.reward.shape[1]))
        rng = np.random.default_rng([self.seed, int(self.buffer.seen)])
        for episode in episodes:
            self.buffer.add(episode, rng)
        self.updates_owed += self.options.updates_per_episode * len(episodes)
        while self.updates_owed >= 1:
            self.updates_owed -= 1
            batch = self.buffer.sample(self.options.batch_size, rng)
            self.state, self.metrics = _train(self.state, *map(jnp.asarray, batch))

    def contributions(self, observation: Shaped[Array, "*shape"]) -> Float[Array, "*batch"]:
        """The synthetic return of each state, in units of reward, scaled by trust."""
        return _contribution(self.state, observation)

    def snapshot(self) -> dict[str, Any]:
        """All that changes while learning, as a pytree of fixed shapes."""
        buffer = self.buffer
        return {
            "state": self.state,
            "updates_owed": self.updates_owed,
            "observation": buffer.observation,
            "reward": buffer.reward,
            "length": buffer.length,
            "seen": buffer.seen,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Goes on from a snapshot."""
        self.state = snapshot["state"]
        self.updates_owed = snapshot["updates_owed"]
        for name in ("observation", "reward", "length", "seen"):
            setattr(self.buffer, name, snapshot[name])

    def report(self) -> Mapping[str, Any]:
        """Diagnostics of the last update."""
        return self.metrics | {
            "trust": self.state.trust,
            "buffer_episodes": len(self.buffer),
            "buffer_mb": self.buffer.bytes / 1e6,
        }


_contribution = eqx.filter_jit(lambda state, observation: state.contribution(observation))


@eqx.filter_jit(donate="all")
def _train(
    state: EpisodicState,
    observation: Shaped[Array, "time batch *observation"],
    reward: Float[Array, "time batch"],
    length: Int[Array, "batch"],
) -> tuple[EpisodicState, dict[str, Float[Array, ""]]]:
    """One update on a batch of episodes."""
    valid = jnp.arange(reward.shape[0], dtype=jnp.int32)[:, None] < length[None]
    reward = discounted_return(reward, state.model.options.horizon)
    track = functools.partial(_track, count=state.updates)
    state = eqx.tree_at(
        lambda s: (s.reward_mean, s.reward_square),
        state,
        (
            track(state.reward_mean, masked_mean(reward, valid)),
            track(state.reward_square, masked_mean(jnp.square(reward), valid)),
        ),
    )
    target = state.standardised(reward)

    def loss(model: EpisodicModel):
        prediction = model.predict(observation, valid, state.gate_scale)
        residual = target - prediction.b
        if model.options.two_stage:
            left = jax.lax.stop_gradient(residual)
            total = masked_mean(jnp.square(residual), valid)
            total += masked_mean(jnp.square(left - prediction.memory), valid)
        else:
            left = residual
            total = masked_mean(jnp.square(residual - prediction.memory), valid)
        if model.options.gate == "variance":
            miss = (prediction.variance - jnp.square(left)) / state.gate_scale
            total += masked_mean(jnp.square(miss), valid)
        if model.options.sparsity:
            apart = prediction.c - jax.lax.stop_gradient(prediction.c_rest)
            total += model.options.sparsity * masked_mean(_sparsity(apart), valid)
        if model.options.centred:
            total += jnp.square(prediction.c_mean)  # else nothing keeps the mean of c in place
        return total, prediction

    grads, prediction = eqx.filter_grad(loss, has_aux=True)(state.model)
    updates, optimizer = adam(state.model.options.learning_rate).update(grads, state.optimizer)
    variance = jnp.where(valid, prediction.variance, 0)
    metrics = {
        "explained_variance": explained_variance(target - prediction.b, prediction.memory, valid),
        "explained_variance_open": explained_variance(
            target - prediction.b, prediction.memory, valid & (prediction.g > 0.5)
        ),
        "gate_mean": masked_mean(prediction.g, valid),
        "gate_max": jnp.max(prediction.g),
        "contribution_std": jnp.sqrt(masked_mean(jnp.square(prediction.c), valid)),
    }
    state = EpisodicState(
        model=eqx.apply_updates(state.model, updates),
        optimizer=optimizer,
        reward_mean=state.reward_mean,
        reward_square=state.reward_square,
        c_mean=track(state.c_mean, prediction.c_mean),
        c_rest=track(state.c_rest, prediction.c_mean + prediction.c_rest),
        gate_scale=track(state.gate_scale, jnp.max(variance)),
        updates=state.updates + 1,
        examined=state.examined,
        evidence=state.evidence,
        at_stake=state.at_stake,
    )
    return state, metrics


@eqx.filter_jit(donate="all")
def _examine(
    state: EpisodicState,
    observation: Shaped[Array, "time batch *observation"],
    reward: Float[Array, "time batch"],
    length: Int[Array, "batch"],
) -> EpisodicState:
    """Compares predictions with episodes that were not trained on yet."""
    valid = jnp.arange(reward.shape[0], dtype=jnp.int32)[:, None] < length[None]
    reward = discounted_return(reward, state.model.options.horizon)
    # Centred by what training centred with: new episodes are not like the buffer's mixture.
    prediction = state.model.predict(observation, valid, state.gate_scale, state.c_mean)
    residual = state.standardised(reward) - prediction.b
    unit = jnp.square(state.reward_scale)  # it changes, and evidence of all times is averaged
    seen = unit * jnp.stack(
        [
            masked_mean(prediction.memory * residual, valid),
            masked_mean(jnp.square(prediction.memory), valid),
        ]
    )
    at_stake = unit * masked_mean(jnp.square(prediction.g * residual), valid)
    # Before the first update neither the unit of reward nor the model means anything. After that,
    # episodes count by how much there was to predict: those of a policy that makes no mistakes
    # leave nothing, and say nothing against the model.
    began = state.updates > 0
    usually = state.at_stake + 2 / (state.examined + 2) * (at_stake - state.at_stake)
    news = jnp.minimum(at_stake / jnp.maximum(usually, 1e-12), 1)
    evidence = state.evidence + news * (
        _track(state.evidence, seen, state.examined) - state.evidence
    )
    return eqx.tree_at(
        lambda s: (s.evidence, s.at_stake, s.examined),
        state,
        (
            jnp.where(began, evidence, state.evidence),
            jnp.where(began, usually, state.at_stake),
            state.examined + began.astype(jnp.int32),
        ),
    )


def discounted_return(
    reward: Float[Array, "time batch"], discount: float
) -> Float[Array, "time batch"]:
    """The sum of this reward and the later ones of the episode, each step later worth less."""
    if not discount:
        return reward

    def add(later: Float[Array, "batch"], reward: Float[Array, "batch"]):
        total = reward + discount * later
        return total, total

    return jax.lax.scan(add, jnp.zeros_like(reward[0]), reward, reverse=True)[1]


def _sparsity(c: Float[Array, "..."]) -> Float[Array, "..."]:
    """The size of c for small ones, ever less for large ones: what stands out is not shrunk."""
    return SMALL * jnp.log1p(jnp.abs(c) / SMALL)


def _track(
    average: Float[Array, "..."], value: Float[Array, "..."], count: Int[Array, ""]
) -> Float[Array, "..."]:
    """A running average; of the first values it is the mean, whatever it started from."""
    return average + jnp.maximum(RATE, 1 / (count + 1)) * (value - average)


def _padded(episodes: list[Episode], longest: int) -> tuple[Array, Array, Array]:
    """Episodes side by side, padded to few different lengths and numbers."""
    time = bucket(max(map(len, episodes)), longest)
    batch = bucket(len(episodes), 1 << 30)
    like = episodes[0].observation
    observation = np.zeros((time, batch, *like.shape[1:]), like.dtype)
    reward = np.zeros((time, batch), np.float32)
    length = np.zeros(batch, np.int32)
    for row, episode in enumerate(episodes):
        observation[: len(episode), row] = episode.observation
        reward[: len(episode), row] = episode.reward
        length[row] = len(episode)
    return jnp.asarray(observation), jnp.asarray(reward), jnp.asarray(length)
