"""COCOA: counterfactual contributions of actions to rewarding outcomes."""

import dataclasses
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp

from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.credit.hindsight_actions.method import (
    HindsightActions,
    HindsightState,
)
from synthetic_returns.credit.hindsight_actions.model import HindsightModel
from synthetic_returns.credit.hindsight_actions.outcomes import (
    Outcomes,
    at_steps,
    most_rewarding,
    outcomes_of_classes,
    outcomes_of_steps,
)
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.types import Key

__all__ = ["Cocoa"]


@dataclasses.dataclass(frozen=True)
class Cocoa(HindsightActions):
    """Estimates for every reward whether it would have come with another action, too.

    The contribution coefficient is ``w(s, a, u) = p(a | s, u) / pi(a | s) - 1``, Eq. (3) of the
    paper: how much more likely action a in state s makes the outcome u. The advantage of an action
    is ``r(s_t, a) - r(s_t) + sum over k > t of w(s_t, a, u_k) r_k``. An outcome is either the
    reward itself, one of the distinct values seen, in O(T * distinct rewards); or the features that
    predict rewards together with the reward, in O(T * rewarding steps).
    """

    name: ClassVar[str] = "cocoa"
    summary: ClassVar[str] = "contributions of actions to rewards"
    reference: ClassVar[str] = "Meulemans et al. 2023"

    objects: Literal["reward", "features"] = "reward"
    """What an outcome is: the reward itself, or the features that predict it."""

    def init(self, spec: EpisodeSpec, key: Key) -> HindsightState:
        """Draws the parameters."""
        return self.starting(spec, "class" if self.objects == "reward" else "features", key)

    def outcomes(
        self, state: HindsightState, model: HindsightModel, episodes: EpisodeBatch, key: Key | None
    ) -> Outcomes:
        """The rewards after each step; rewards of 0 contribute nothing."""
        del key
        if self.objects == "reward":
            psi = model.psi(jnp.eye(self.most))
            return outcomes_of_classes(state.classes, psi, episodes)
        times, paid = most_rewarding(episodes, self.most)
        # What hindsight learns is no reason to change the features that predict rewards.
        _, features = jax.lax.stop_gradient(model.rewards(episodes.source))
        reward = episodes.reward[..., None] / state.scale
        described = at_steps(jnp.concatenate([features, reward], axis=-1), times)
        return outcomes_of_steps(times, paid, model.psi(described), episodes)
