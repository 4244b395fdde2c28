"""The state of episodic learning, and the two things that change it: training and examination."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Shaped

from synthetic_returns.agents.optimizers import steady_adam
from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.credit.episodic.model import EpisodicModel, last_valid
from synthetic_returns.credit.episodic.settings import EpisodicSettings
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.types import Key
from synthetic_returns.utils.averages import explained_variance, masked_mean, tracked

__all__ = ["EpisodicState", "examine", "return_over", "sparsity_cost", "train"]

SMALL = 0.1  # a contribution, in standardised rewards, that the cost of sparsity is meant for


class EpisodicState(eqx.Module):
    """The model and what it knows about its data.

    Attributes:
      model: c, g and b.
      optimizer: Adam's state.
      reward_mean: running mean of the rewards; if the model is told which is the last of an
        episode, that of the others and that of the last ones.
      reward_variance: running mean of their squared distance from it.
      c_mean: running mean of c.
      c_rest: running median of c: the contribution of an ordinary state, which counts as none.
      gate_scale: running maximum of the variance that b leaves; where the gate is fully open.
      updates: how many there were.
      examined: how many batches of new episodes were compared with predictions.
      evidence: running means of prediction * residual and of prediction squared, on episodes
        before they were trained on; their ratio is the trust.
      at_stake: mean of what there was to predict where the gate was open, over a share of all time.
      final: means over the last rewards of new episodes, of the reward, its square, and the
        squares of what b and of what the whole prediction leave; only if the model is told which
        they are.
    """

    model: EpisodicModel
    optimizer: optax.OptState
    reward_mean: Float[Array, "kinds"]
    reward_variance: Float[Array, ""]
    c_mean: Float[Array, ""]
    c_rest: Float[Array, ""]
    gate_scale: Float[Array, ""]
    updates: Int[Array, ""]
    examined: Int[Array, ""]
    evidence: Float[Array, "2"]
    at_stake: Float[Array, ""]
    final: Float[Array, "4"] | None = None

    @classmethod
    def init(cls, spec: EpisodeSpec, settings: EpisodicSettings, key: Key) -> "EpisodicState":
        """Draws the parameters."""
        model = EpisodicModel(spec, settings, key=key)
        return cls(
            model=model,
            optimizer=steady_adam(settings.learning_rate).init(eqx.filter(model, eqx.is_array)),
            reward_mean=jnp.zeros(2 if settings.end else 1),
            reward_variance=jnp.ones(()),
            c_mean=jnp.zeros(()),
            c_rest=jnp.zeros(()),
            gate_scale=jnp.ones(()),
            updates=jnp.zeros((), jnp.int32),
            examined=jnp.zeros((), jnp.int32),
            evidence=jnp.zeros(2),
            at_stake=jnp.zeros(()),
            final=jnp.zeros(4) if settings.end else None,
        )

    @property
    def reward_scale(self) -> Float[Array, ""]:
        """The unit in which the model measures rewards."""
        if not self.model.settings.standardise:
            return jnp.ones(())
        return jnp.sqrt(jnp.maximum(self.reward_variance, 1e-6))

    def usual_reward(self, valid: Bool[Array, "time batch"]) -> Float[Array, "time batch"]:
        """What the model measures the reward of each step from.

        A last reward like Skiing's, far from all others, would else make up most of the variance,
        and b take long to learn what a mean says.
        """
        if not self.model.settings.standardise:
            return jnp.zeros(valid.shape)
        if not self.model.settings.end:
            return jnp.full(valid.shape, self.reward_mean[0])
        return jnp.where(last_valid(valid), self.reward_mean[1], self.reward_mean[0])

    def standardised(
        self, reward: Float[Array, "time batch"], valid: Bool[Array, "time batch"]
    ) -> Float[Array, "time batch"]:
        """Rewards in the model's units."""
        return (reward - self.usual_reward(valid)) / self.reward_scale

    @property
    def trust(self) -> Float[Array, ""]:
        """The factor in [0, 1] by which predictions on new episodes have to be shrunk to be best.

        It is the slope of the regression of the residual on the prediction: 0 for predictions
        that are noise, 1 for true ones, however much else is unpredictable.
        """
        if not self.model.settings.trust:
            return jnp.ones(())
        return jnp.clip(self.evidence[0] / jnp.maximum(self.evidence[1], 1e-12), 0, 1)

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

    def explain(self, episodes: EpisodeBatch) -> Explanation:
        """What the model says about every state of a batch of episodes."""
        states = episodes.observation
        # A terminal state is not left: it stands behind the last prediction.
        valid = jnp.concatenate([episodes.valid, jnp.zeros_like(episodes.valid[:1])])
        prediction = self.model.predict(states, valid, self.gate_scale, self.c_mean)
        b = prediction.b * self.reward_scale + self.usual_reward(valid)
        r_hat = b + prediction.memory * self.reward_scale
        steps = self.model.settings.horizon
        terms = {
            "c": Term(self.contribution(states), "synthetic return c"),
            "g": Term(prediction.g, "gate g", "gate", "leaving", steps),
            "b": Term(b, "baseline b", "line", "leaving", steps),
            "r_hat": Term(r_hat, "predicted reward", "line", "leaving", steps),
        }
        return Explanation(terms, credit="c")

    def contribution(self, observation: Shaped[Array, "*shape"]) -> Float[Array, "*batch"]:
        """The synthetic return of each state, in units of reward, scaled by trust."""
        c = self.model.contribution(observation)
        if self.model.settings.centred:
            c = c - self.c_rest
        return jax.lax.stop_gradient(c * (self.reward_scale * self.trust))


def train(
    state: EpisodicState, episodes: EpisodeBatch
) -> tuple[EpisodicState, dict[str, Float[Array, ""]]]:
    """One update on a batch of episodes."""
    observation, valid = episodes.source, episodes.valid
    reward = return_over(episodes.reward, state.model.settings.horizon)
    track = functools.partial(tracked, count=state.updates)
    kinds = [valid]
    if state.model.settings.end:
        kinds = [valid & ~last_valid(valid), last_valid(valid)]
    mean = track(state.reward_mean, jnp.stack([masked_mean(reward, kind) for kind in kinds]))
    state = eqx.tree_at(lambda s: s.reward_mean, state, mean)
    spread = masked_mean(jnp.square(reward - state.usual_reward(valid)), valid)
    state = eqx.tree_at(lambda s: s.reward_variance, state, track(state.reward_variance, spread))
    target = state.standardised(reward, valid)

    def loss(model: EpisodicModel):
        prediction = model.predict(observation, valid, state.gate_scale)
        residual = target - prediction.b
        if model.settings.two_stage:
            left = jax.lax.stop_gradient(residual)
            total = masked_mean(jnp.square(residual), valid)
            total += masked_mean(jnp.square(left - prediction.memory), valid)
        else:
            left = residual
            total = masked_mean(jnp.square(residual - prediction.memory), valid)
        if model.settings.gate == "variance":
            miss = (prediction.variance - jnp.square(left)) / state.gate_scale
            total += masked_mean(jnp.square(miss), valid)
        if model.settings.sparsity:
            apart = prediction.c - jax.lax.stop_gradient(prediction.c_rest)
            cost = sparsity_cost(apart)
            total += model.settings.sparsity * masked_mean(cost, valid)
        if model.settings.centred:
            total += jnp.square(prediction.c_mean)  # else nothing keeps the mean of c in place
        return total, prediction

    grads, prediction = eqx.filter_grad(loss, has_aux=True)(state.model)
    updates, optimizer = steady_adam(state.model.settings.learning_rate).update(
        grads, state.optimizer
    )
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
        reward_variance=state.reward_variance,
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


def examine(state: EpisodicState, episodes: EpisodeBatch) -> EpisodicState:
    """Compares predictions with episodes that were not trained on yet."""
    observation, valid = episodes.source, episodes.valid
    reward = return_over(episodes.reward, state.model.settings.horizon)
    # Centred by what training centred with: new episodes are not like the buffer's mixture.
    prediction = state.model.predict(observation, valid, state.gate_scale, state.c_mean)
    residual = state.standardised(reward, valid) - prediction.b
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
        return average + news * (tracked(average, value, state.examined) - average)

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
    """The sum of ``steps`` rewards of the episode, starting with each one."""
    if steps == 1:
        return reward
    to_go = jnp.cumsum(reward[::-1], axis=0)[::-1]
    after = jnp.zeros_like(to_go).at[: max(0, len(to_go) - steps)].set(to_go[steps:])
    return to_go - after


def sparsity_cost(c: Float[Array, "..."]) -> Float[Array, "..."]:
    """The size of c for small ones, ever less for large ones: what stands out is not shrunk."""
    return SMALL * jnp.log1p(jnp.abs(c) / SMALL)
