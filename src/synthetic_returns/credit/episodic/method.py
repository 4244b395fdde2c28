"""The episodic method: state-associative learning on whole episodes, with a model of its own."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from synthetic_returns.credit.data.episode import EpisodeBatch, Segment
from synthetic_returns.credit.episodic.settings import EpisodicSettings
from synthetic_returns.credit.episodic.state import EpisodicState, examine, train
from synthetic_returns.credit.explanation import Explanation
from synthetic_returns.credit.method import Assignment, Metrics
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.types import Key

__all__ = ["Episodic"]


@dataclasses.dataclass(frozen=True)
class Episodic(EpisodicSettings):
    """State-associative learning as a regression on a buffer of whole episodes.

    The model has its own encoder and learns apart from the agent, so it can train on every episode
    several times. The agent is paid c of each state that it arrives in.
    """

    name: ClassVar[str] = "episodic"
    summary: ClassVar[str] = "c, g and b trained on whole episodes"
    reference: ClassVar[str] = "ours"

    def init(self, spec: EpisodeSpec, key: Key) -> EpisodicState:
        """Draws the parameters."""
        return EpisodicState.init(spec, self, key)

    def learn(
        self, state: EpisodicState, episodes: EpisodeBatch, key: Key
    ) -> tuple[EpisodicState, Metrics]:
        """One step of the regression."""
        del key
        return train(state, episodes)

    def examine(self, state: EpisodicState, episodes: EpisodeBatch) -> EpisodicState:
        """Compares predictions with new episodes: the trust."""
        return examine(state, episodes)

    def resume(self, state: EpisodicState, time: Int[Array, "batch"]) -> None:
        """Nothing is carried."""
        del state, time

    def assign(
        self, state: EpisodicState, carry: None, segment: Segment
    ) -> tuple[Assignment, None]:
        """``c`` of each state arrived in."""
        return Assignment(reward=state.contribution(jnp.asarray(segment.arrived))), carry

    def explain(self, state: EpisodicState, episodes: EpisodeBatch) -> Explanation:
        """c, g, b and the predicted reward."""
        return state.explain(episodes)

    def of_states(
        self, state: EpisodicState, observation: Shaped[Array, "batch *shape"]
    ) -> Float[Array, "batch"]:
        """``c`` of any states."""
        return state.contribution(observation)

    def report(self, state: EpisodicState) -> Metrics:
        """The trust, and how well last rewards are explained where they are told apart."""
        report: dict[str, Any] = {"trust": state.trust}
        if state.final is not None:
            report |= {
                "explained_by_c": state.explained_by_c,
                "explained_final": state.explained_final,
            }
        return jax.lax.stop_gradient(report)
