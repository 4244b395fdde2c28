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
from synthetic_returns.credit.episodes import Episode, EpisodeBuffer, bucket, thinned_length
from synthetic_returns.credit.episodic_model import EpisodicModel, last_valid
from synthetic_returns.credit.explanation import Explanation
from synthetic_returns.credit.options import EpisodicOptions
from synthetic_returns.optimizers import adam
from synthetic_returns.types import Key

__all__ = ["EpisodicLearner", "EpisodicState"]

BUFFER = ("observation", "reward", "length", "seen")  # what an EpisodeBuffer holds
EXAMINED_STATES = 10_000  # at once, at most: episodes of images may end in many places together
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
      final: means over the last rewards of new episodes, of the reward, its square, and the
        squares of what b and of what the whole prediction leave; only if trust waits for them.
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
    final: Float[Array, "4"] | None = None

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
        held = self.explained_by_c >= self.model.options.trust_from
        return jnp.where(held, jnp.clip(slope, 0, 1), 0)

    @property
    def explained_by_c(self) -> Float[Array, ""]:
        """The share of what b leaves of new episodes' last rewards that c explains."""
        if self.final is None:
            return jnp.ones(())
        _, _, left_by_b, left = self.final
        return 1 - left / jnp.maximum(left_by_b, 1e-12)

    @property
    def explained_final(self) -> Float[Array, ""]:
        """The share of the variance of new episodes' last rewards that the model explains."""
        if self.final is None:
            return jnp.ones(())
        mean, square, _, left = self.final
        return 1 - left / jnp.maximum(square - jnp.square(mean), 1e-12)

    def explain(
        self,
        observation: Shaped[Array, "time batch *observation"],
        valid: Bool[Array, "time batch"],
    ) -> Explanation:
        """What the model says about every step of a batch of episodes.

        If it was trained on every n-th state, g, b and the predicted reward are those of the next n
        steps together.
        """
        every = self.model.options.every
        prediction = self.model.predict(
            observation[::every], valid[::every], self.gate_scale, self.c_mean
        )
        mean = self.reward_mean if self.model.options.standardise else jnp.zeros(())
        b = prediction.b * self.reward_scale + mean
        r_hat = b + prediction.memory * self.reward_scale
        g, b, r_hat = (jnp.repeat(x, every, axis=0)[: len(valid)] for x in (prediction.g, b, r_hat))
        return Explanation(c=self.contribution(observation), g=g, b=b, r_hat=r_hat)

    def contribution(self, observation: Shaped[Array, "*shape"]) -> Float[Array, "*batch"]:
        """The synthetic return of each state, in units of reward, scaled by trust."""
        c = self.model.contribution(observation)
        if self.model.options.centred:
            c = c - self.c_rest
        # A state that was trained on stands for those that were left out.
        unit = self.reward_scale * self.trust / self.model.options.every
        return jax.lax.stop_gradient(c * unit)


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
        longest = thinned_length(longest, options.every)
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
            final=jnp.zeros(4) if options.trust_from else None,
        )
        self.buffer = EpisodeBuffer(observation_shape, dtype, options.slots, longest)
        self.seed = int(jax.random.randint(sample_key, (), 0, 2**31 - 1))
        self.updates_owed = 0.0
        self.metrics: dict[str, Float[Array, ""]] = {}

    def learn(self, episodes: Iterable[Episode]) -> None:
        """Takes in finished episodes, and trains as often as they are worth."""
        episodes = [episode.thinned(self.options.every) for episode in episodes]
        if not episodes:
            return
        longest = self.buffer.reward.shape[1]
        together = max(1, EXAMINED_STATES // bucket(max(map(len, episodes)), longest))
        for start in range(0, len(episodes), together):
            some = episodes[start : start + together]
            self.state = _examine(self.state, *_padded(some, longest))
        rng = np.random.default_rng([self.seed, int(self.buffer.seen)])
        for episode in episodes:
            self.buffer.add(episode, rng)
        if len(self.buffer) < min(self.options.warmup, self.buffer.slots):
            return
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
        snapshot = {"state": self.state, "updates_owed": self.updates_owed}
        if self.options.save_episodes:
            snapshot |= {name: getattr(self.buffer, name) for name in BUFFER}
        return snapshot

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Goes on from a snapshot."""
        self.state = snapshot["state"]
        self.updates_owed = snapshot["updates_owed"]
        for name in snapshot.keys() & set(BUFFER):
            setattr(self.buffer, name, snapshot[name])

    def report(self) -> Mapping[str, Any]:
        """Diagnostics of the last update."""
        report = self.metrics | {
            "trust": self.state.trust,
            "buffer_episodes": len(self.buffer),
            "buffer_mb": self.buffer.bytes / 1e6,
        }
        if self.state.final is not None:
            report |= {
                "explained_by_c": self.state.explained_by_c,
                "explained_final": self.state.explained_final,
            }
        return report


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
    reward = return_over(reward, state.model.options.horizon)
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
            dearer = jnp.where(apart < 0, model.options.negative_cost, 1.0)
            total += model.options.sparsity * masked_mean(dearer * _sparsity(apart), valid)
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
        final=state.final,
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
    reward = return_over(reward, state.model.options.horizon)
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
    share = jnp.where(began, 2 / (state.examined + 2), 0)  # averages over a share of all time
    usually = state.at_stake + share * (at_stake - state.at_stake)
    news = jnp.where(began, jnp.minimum(at_stake / jnp.maximum(usually, 1e-12), 1), 0)

    def learned(average: Float[Array, "..."], value: Float[Array, "..."]) -> Float[Array, "..."]:
        return average + news * (_track(average, value, state.examined) - average)

    evidence, final = learned(state.evidence, seen), state.final
    if final is not None:
        ends = last_valid(valid)
        squares = [
            jnp.square(reward),
            unit * jnp.square(residual),
            unit * jnp.square(residual - prediction.memory),
        ]
        final = learned(final, jnp.stack([masked_mean(x, ends) for x in (reward, *squares)]))
    return eqx.tree_at(
        lambda s: (s.evidence, s.at_stake, s.final, s.examined),
        state,
        (evidence, usually, final, state.examined + began.astype(jnp.int32)),
        is_leaf=lambda x: x is None,
    )


def return_over(reward: Float[Array, "time batch"], steps: int) -> Float[Array, "time batch"]:
    """The sum of so many rewards of the episode from each one on."""
    if steps == 1:
        return reward
    to_go = jnp.cumsum(reward[::-1], axis=0)[::-1]
    after = jnp.zeros_like(to_go).at[: max(0, len(to_go) - steps)].set(to_go[steps:])
    return to_go - after


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
