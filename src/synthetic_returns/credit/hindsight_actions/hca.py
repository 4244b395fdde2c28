"""HCA: hindsight credit assignment, given the states that were reached or the return."""

import dataclasses
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.hindsight_actions.method import (
    HindsightActions,
    HindsightState,
    actions_term,
    log_policy,
    returns_to_come,
    taken_action,
)
from synthetic_returns.credit.hindsight_actions.model import HindsightModel, taken
from synthetic_returns.credit.hindsight_actions.outcomes import (
    Outcomes,
    at_steps,
    chosen_steps,
    most_rewarding,
    outcomes_of_steps,
)
from synthetic_returns.credit.method import Metrics
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.types import Key
from synthetic_returns.utils.averages import masked_mean

__all__ = ["Hca"]


@dataclasses.dataclass(frozen=True)
class Hca(HindsightActions):
    """Compares how likely an action was with how likely it is given a later state or the return.

    Given a state, Theorem 1 of the paper: the advantage of an action is
    ``r(s_t, a) - r(s_t) + sum over k > t of (h(a | s_t, s_k) / pi(a | s_t) - 1) r_k``, in
    O(T * rewarding steps). Given the return-to-go z, Theorem 2: that of the action taken is
    ``(1 - pi(a_t | s_t) / h(a_t | s_t, z_t)) z_t``, in O(T).
    """

    name: ClassVar[str] = "hca"
    summary: ClassVar[str] = "likelihood of actions in hindsight"
    reference: ClassVar[str] = "Harutyunyan et al. 2019"

    condition: Literal["state", "return"] = "return"
    """The outcome to condition on: the states in which rewards were paid, or the return-to-go.
    States that do not show what they are about to pay explain nothing."""

    def init(self, spec: EpisodeSpec, key: Key) -> HindsightState:
        """Draws the parameters."""
        return self.starting(spec, self.condition, key)

    def outcomes(
        self, state: HindsightState, model: HindsightModel, episodes: EpisodeBatch, key: Key | None
    ) -> Outcomes:
        """Later states: any of them to learn from, and those that paid to give credit for."""
        del state
        if key is None:
            times, chosen = most_rewarding(episodes, self.most)
        else:
            priority = jax.random.uniform(key, episodes.reward.shape)
            times, chosen = chosen_steps(priority, episodes.valid, self.most)
        psi = model.psi(at_steps(episodes.source, times))
        return outcomes_of_steps(times, chosen, psi, episodes)

    def hindsight_loss(
        self, state: HindsightState, model: HindsightModel, episodes: EpisodeBatch, key: Key
    ) -> tuple[Float[Array, ""], Metrics]:
        """The cross-entropy of the actions given states or returns."""
        if self.condition == "state":
            return super().hindsight_loss(state, model, episodes, key)
        action, valid = taken_action(episodes), episodes.valid
        loss = -masked_mean(taken(_given_return(state, model, episodes), action), valid)
        before = -masked_mean(taken(log_policy(episodes), action), valid)
        return loss, {"told_by_outcomes": before - loss}

    def parts(
        self, state: HindsightState, episodes: EpisodeBatch
    ) -> tuple[Float[Array, "time batch actions"], Float[Array, "time batch actions"]]:
        """By way of the reward of the step itself, which a return includes, and of later ones."""
        if self.condition == "state":
            return super().parts(state, episodes)
        log_pi, action = log_policy(episodes), taken_action(episodes)
        log_h = taken(_given_return(state, state.model, episodes), action)
        credit = -jnp.expm1(taken(log_pi, action) - log_h) * returns_to_come(episodes)
        # The agent weighs advantages with its policy; this one is of an action that was drawn.
        drawn = jax.nn.one_hot(action, log_pi.shape[-1]) * jnp.exp(-log_pi)
        advantage = credit[..., None] * drawn
        return jnp.zeros_like(advantage), advantage

    def explain(self, state: HindsightState, episodes: EpisodeBatch) -> Explanation:
        """The advantages and what they are made of."""
        if self.condition == "state":
            return super().explain(state, episodes)
        _, advantage = self.parts(state, episodes)
        h = jnp.exp(taken(_given_return(state, state.model, episodes), taken_action(episodes)))
        pi = jnp.exp(taken(log_policy(episodes), taken_action(episodes)))
        terms = {
            "advantage": actions_term(advantage, "advantage of each action"),
            "h": _line(h, "probability of the action given the return"),
            "pi": _line(pi, "probability of the action before"),
        }
        return Explanation(terms, credit="advantage")


def _line(values: Float[Array, "time batch"], label: str) -> Term:
    unknown = jnp.full_like(values[:1], jnp.nan)
    return Term(jnp.concatenate([values, unknown]), label, "gate", "leaving")


def _given_return(
    state: HindsightState, model: HindsightModel, episodes: EpisodeBatch
) -> Float[Array, "time batch actions"]:
    """``log h(a | s_t, z_t)``, with z_t the return to come."""
    psi = model.psi(state.standardised(returns_to_come(episodes))[..., None])
    said = jnp.einsum("tbar,tbr->tba", model.phi(episodes.source), psi)
    return jax.nn.log_softmax(log_policy(episodes) + said)
