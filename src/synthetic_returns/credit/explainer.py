"""What explains the credit of episodes: a method, with what it has learned."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from synthetic_returns.credit.auxiliary import AgentStates, AuxiliaryMethod
from synthetic_returns.credit.data.episode import EpisodeBatch, Segment
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.method import Assigner, Gives, Need
from synthetic_returns.credit.view import View
from synthetic_returns.nn.networks import Network
from synthetic_returns.types import TimeStep, Trajectory

__all__ = ["AuxiliaryExplainer", "EpisodeExplainer", "Explainer", "Rollout", "explain"]


class Rollout(eqx.Module):
    """Whole episodes as they were played, one in each column from FIRST to LAST.

    What comes after means nothing.

    Attributes:
      timestep: ``[T + 1, B]``.
      action: what was done in each state but the last, where that is known.
      log_probs: how likely each action was, as a logarithm.
      value: what the agent expected.
    """

    timestep: TimeStep
    action: Int[Array, "time batch"] | None = None
    log_probs: Float[Array, "time batch actions"] | None = None
    value: Float[Array, "time batch"] | None = None

    @classmethod
    def of(cls, trajectory: Trajectory) -> "Rollout":
        """What an agent rollout."""
        log_probs = jax.nn.log_softmax(trajectory.logits)
        return cls(trajectory.timestep, trajectory.action, log_probs, trajectory.value)


class EpisodeExplainer(eqx.Module):
    """A method that gives credit beside the agent.

    Attributes:
      state: what it has learned.
      method: which one.
      view: what it sees.
    """

    state: Any
    method: Assigner = eqx.field(static=True)
    view: View = eqx.field(static=True)

    def explain(self, rollout: Rollout) -> Explanation:
        """What the method says about every state of whole episodes."""
        timestep = rollout.timestep
        ended = jnp.cumsum(timestep.last, axis=0, dtype=jnp.int32) > 0
        running = ~ended[:-1]
        told = timestep.contribution
        reward, discount = timestep.reward[1:], timestep.discount[1:]
        whole = EpisodeBatch(
            observation=self.view.seen(timestep.observation),
            reward=jnp.where(running, self.view.rewards(reward, timestep.last[1:], discount), 0),
            discount=jnp.where(running, discount, 0),
            length=jnp.sum(running, axis=0, dtype=jnp.int32),
            action=rollout.action,
            log_probs=rollout.log_probs,
            value=rollout.value,
            contribution=None if told is None else jnp.where(running, told[1:], 0),
        )
        if self.view.stride == 1:
            explanation = self.method.explain(self.state, whole)
        else:
            explanation = self._spread(
                self.method.explain(self.state, self.view.thin(whole)), whole
            )
        return explanation.earned(timestep.last)

    def of_states(self, observation: Shaped[Array, "batch *shape"]) -> Float[Array, "batch"]:
        """The credit of single states; NaN if it depends on what came before."""
        credit = self.method.of_states(self.state, self.view.seen(observation))
        return credit / self.method.steps_shared(self.view.stride)

    def _spread(self, explanation: Explanation, whole: EpisodeBatch) -> Explanation:
        """The terms of thinned episodes on every state, and the credit as it is paid there."""
        time = jnp.arange(len(whole.observation), dtype=jnp.int32)[:, None]
        index, is_kept = self.view.place(time)

        def repeated(x: Array, axis: int) -> Array:
            return jnp.take(x, index[:, 0], axis=axis)

        def spread_term(term: Term) -> Term:
            values = repeated(jnp.asarray(term.values), 0)
            if term.kind == "pairs":
                values = repeated(values, 2)
            stride = self.view.stride
            return Term(
                values, term.label, term.kind, term.about, term.steps * stride, term.stride * stride
            )

        terms = {name: spread_term(term) for name, term in explanation.terms.items()}
        spread = Explanation(terms, explanation.credit)
        if self.method.gives is not Gives.REWARD:
            return spread
        if Need.WHOLE_EPISODES in self.method.needs:
            arrived = is_kept | (time == whole.length[None])
            return spread.with_credit(jnp.where(arrived, spread.paid, 0))
        segment = Segment.of_episodes(**vars(whole))
        carry = self.method.start(self.state, len(whole.length))
        assignment, _ = self.method.assign(self.state, carry, segment)
        steps = self.method.steps_shared(self.view.stride)
        paid: Any = assignment.shared_out(steps).reward
        return spread.with_credit(jnp.concatenate([spread.paid[:1] / steps, paid]))


class AuxiliaryExplainer(eqx.Module):
    """A method that is trained with the agent.

    Attributes:
      network: the agent's.
      model: what the method has learned.
      method: which one.
      reward_scale: the rewards that the agent learns from are this many times the environment's.
    """

    network: Network
    model: Any
    method: AuxiliaryMethod = eqx.field(static=True)
    reward_scale: float = eqx.field(static=True)

    def explain(self, rollout: Rollout) -> Explanation:
        """What the method says about every state of whole episodes, in the environment's units."""
        timestep = rollout.timestep
        features = self.network.torso(timestep.observation)
        core = self.network.initial_state(timestep.reward.shape[1])
        hidden, _ = self.network.recur(features, timestep.first, core)
        explanation = self.method.explain(
            self.model,
            AgentStates(
                features=features,
                hidden=hidden,
                first=timestep.first,
                last=timestep.last,
                reward=self.reward_scale * timestep.reward[1:],
            ),
        )
        explanation = explanation.earned(timestep.last)
        terms = {
            name: term
            if term.kind == "gate"
            else eqx.tree_at(lambda t: t.values, term, term.values / self.reward_scale)
            for name, term in explanation.terms.items()
        }
        return Explanation(terms, explanation.credit)

    def of_states(self, observation: Shaped[Array, "batch *shape"]) -> Float[Array, "batch"]:
        """The credit of single states."""
        credit = self.method.of_states(self.model, self.network.torso(observation))
        return credit / self.reward_scale


Explainer = EpisodeExplainer | AuxiliaryExplainer


def explain(explainer: Explainer | None, trajectory: Trajectory) -> Explanation:
    """What a method says about the episodes that an agent played; nothing, if there is none."""
    return Explanation() if explainer is None else explainer.explain(Rollout.of(trajectory))
