"""RUDDER (Arjona-Medina et al. 2019): pays each transition the change of the predicted return."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from synthetic_returns.credit.data.episode import EpisodeBatch, Segment
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.method import Assignment, CreditMethod, Metrics, Need
from synthetic_returns.credit.rudder.model import Forecast, ReturnModel
from synthetic_returns.credit.rudder.state import RudderState, examine, forecast, train
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key
from synthetic_returns.utils.checks import (
    check_not_negative,
    check_positive,
    check_positive_number,
)
from synthetic_returns.utils.meanings import NoMeaning

__all__ = ["Reading", "Rudder"]


class Reading(eqx.Module):
    """How far the LSTM has read the running episodes.

    Attributes:
      memory: the cells of the LSTM.
      steps: how long each episode has lasted.
    """

    memory: Float[Array, "batch size"]
    steps: Int[Array, "batch"]


@dataclasses.dataclass(frozen=True)
class Rudder(CreditMethod):
    """Predicts the return of an episode with an LSTM, and pays the changes of the prediction.

    The redistributed reward of a transition is the prediction after it minus the prediction before
    it. It replaces the environment's reward to the degree to which predictions at the end of new
    episodes were right. The remaining error is settled at the end of each episode.
    """

    name: ClassVar[str] = "rudder"
    summary: ClassVar[str] = "changes of a predicted return"
    reference: ClassVar[str] = "Arjona-Medina et al. 2019"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.EVERY_STATE})
    uses: ClassVar[frozenset[Need]] = frozenset({Need.ACTIONS})
    conserves: ClassVar[bool] = True

    replay: Replay = dataclasses.field(default=Replay(updates_per_episode=2.0))
    """The episodes that it learns from."""
    encoder: TorsoSettings = dataclasses.field(default=TorsoSettings(sizes=(128, 64)))
    """From observations to features."""
    lstm_size: int = 64
    """Memory cells of the LSTM."""
    learning_rate: float = 3e-3
    """Learning rate of Adam."""
    auxiliary_cost: float = 0.5
    """Weight of each auxiliary loss: the return after every transition, the sum of rewards so
    far, and the sum of the next --credit.auxiliary-steps rewards."""
    auxiliary_steps: int = 10
    """Number of next rewards in the third auxiliary loss."""
    gated: bool = True
    """Scale payments by how well the LSTM predicts new episodes; otherwise pay in full."""
    max_episode_steps: int = 2000
    """Refuse episodes longer than this: an update backpropagates through all steps."""

    def __post_init__(self) -> None:
        check_positive("lstm_size", self.lstm_size)
        check_positive("auxiliary_steps", self.auxiliary_steps)
        check_positive("max_episode_steps", self.max_episode_steps)
        check_positive_number("learning_rate", self.learning_rate)
        check_not_negative("auxiliary_cost", self.auxiliary_cost)

    def meaningless(self) -> dict[str, NoMeaning]:
        """The number of rewards in an auxiliary loss, if there is no such loss."""
        if self.auxiliary_cost:
            return {}
        why = "which leaves out the loss that they are in"
        return {"auxiliary_steps": NoMeaning("auxiliary_cost", why, "auxiliary_cost 0.5")}

    def init(self, spec: EpisodeSpec, key: Key) -> RudderState:
        """Draws the parameters; refuses episodes that an LSTM cannot be trained on."""
        if spec.max_steps > self.max_episode_steps:
            raise ValueError(
                f"episodes have up to {spec.max_steps} steps and the LSTM of 'rudder' is trained "
                f"on at most {self.max_episode_steps}: raise its setting max_episode_steps "
                "(--credit.max-episode-steps), if memory and time allow it, or choose a method "
                "without a recurrence."
            )
        model = ReturnModel(spec, self.encoder, self.lstm_size, key=key)
        return RudderState.init(model, self.learning_rate)

    def learn(
        self, state: RudderState, episodes: EpisodeBatch, key: Key
    ) -> tuple[RudderState, Metrics]:
        """One step of the regressions."""
        del key
        return train(
            state,
            episodes,
            learning_rate=self.learning_rate,
            auxiliary_cost=self.auxiliary_cost,
            auxiliary_steps=self.auxiliary_steps,
        )

    def examine(self, state: RudderState, episodes: EpisodeBatch) -> RudderState:
        """Compares predicted with true returns: the quality."""
        return examine(state, episodes)

    def start(self, state: RudderState, num_envs: int) -> Reading:
        """Nothing was read yet."""
        del state
        return Reading(jnp.zeros((num_envs, self.lstm_size)), jnp.zeros(num_envs, jnp.int32))

    def assign(
        self, state: RudderState, carry: Reading, segment: Segment
    ) -> tuple[Assignment, Reading]:
        """What each transition is given instead of its reward, less that reward."""
        first = jnp.asarray(segment.first)
        index = jnp.arange(len(first), dtype=jnp.int32)[:, None]
        begin = jax.lax.cummax(jnp.where(first, index, -carry.steps[None]), axis=0)
        time = index - begin
        action = None if segment.action is None else jnp.asarray(segment.action)
        before, after, memory = state.model(
            jnp.asarray(segment.observation), action, time[:-1], first[:-1], carry.memory
        )
        credit = self._credit(state, before, after, jnp.asarray(segment.reward))
        return Assignment(change=credit), Reading(memory, time[-1])

    def explain(self, state: RudderState, episodes: EpisodeBatch) -> Explanation:
        """The credit, the redistributed reward, and the predicted return."""
        before, after = forecast(state.model, episodes)
        start = jnp.zeros_like(after.whole[:1])
        credit = self._credit(state, before, after, episodes.reward)
        predicted = state.mean + state.scale * jnp.concatenate([before.whole[:1], after.whole])
        given = state.scale * (after.whole - before.whole)
        terms = {
            "credit": Term(jnp.concatenate([start, credit]), "redistributed less earned"),
            "redistributed": Term(jnp.concatenate([start, given]), "redistributed reward"),
            "predicted": Term(predicted, "predicted return"),
        }
        return Explanation(terms, credit="credit")

    def report(self, state: RudderState) -> Metrics:
        """How far predictions hold on new episodes."""
        return {"quality": state.quality}

    def _credit(
        self,
        state: RudderState,
        before: Forecast,
        after: Forecast,
        reward: Float[Array, "time batch"],
    ) -> Float[Array, "time batch"]:
        """``quality * (g_t - g_t-1 - r_t)``."""
        credit = state.scale * (after.whole - before.whole) - reward
        return state.quality * credit if self.gated else credit
