"""The method of advances: rewards are paid when they become predictable, and settled at the end."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from synthetic_returns.credit.advance.examine import examine
from synthetic_returns.credit.advance.model import AdvanceModel
from synthetic_returns.credit.advance.parts import Part, check_parts
from synthetic_returns.credit.advance.state import AdvanceState
from synthetic_returns.credit.advance.steps import times
from synthetic_returns.credit.advance.train import train
from synthetic_returns.credit.data.episode import EpisodeBatch, Segment
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.method import Assignment, CreditMethod, Metrics, Need
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key
from synthetic_returns.utils.checks import check_positive_number, check_sizes

__all__ = ["Advance"]


@dataclasses.dataclass(frozen=True)
class Advance(CreditMethod):
    """Pays rewards when they become predictable, and takes the payments back when they arrive.

    It learns three potentials by regression on whole episodes. The sum of c over the states so far
    predicts the rewards that the baseline b leaves unexplained, and those that an end prevents: it
    is the paper's synthetic return, in the multi-stage form of its supplement. The sum of u does
    the same for actions that leave no trace in any state. The forecast predicts the rewards that b
    will explain. A transition earns what it adds to each potential, scaled by how well such gains
    predicted the outcomes of new episodes. At the end of an episode everything is settled, so every
    episode pays its true return, whatever the model predicts.
    """

    name: ClassVar[str] = "advance"
    summary: ClassVar[str] = "pays in advance, settles at the end"
    reference: ClassVar[str] = "ours"
    uses: ClassVar[frozenset[Need]] = frozenset({Need.ACTIONS})
    conserves: ClassVar[bool] = True

    replay: Replay = dataclasses.field(
        default=Replay(batch_states=5120, updates_per_episode=1.0, warmup=16, same_age=True)
    )
    """The episodes that it learns from."""
    encoder: TorsoSettings = dataclasses.field(default=TorsoSettings(sizes=(64,)))
    """From observations to features."""
    head_sizes: tuple[int, ...] = (64,)
    """Hidden units of the heads, which predict b, c, u and the forecast from features."""
    learning_rate: float = 2e-3
    """Learning rate of Adam."""
    without: tuple[Part, ...] = ()
    """Parts to leave out, for ablations."""

    def __post_init__(self) -> None:
        check_parts(self.without)
        check_sizes("head_sizes", self.head_sizes)
        check_positive_number("learning_rate", self.learning_rate)

    def init(self, spec: EpisodeSpec, key: Key) -> AdvanceState:
        """Draws the parameters."""
        model = AdvanceModel(spec, self.encoder, self.head_sizes, key=key)
        return AdvanceState.init(spec, model, self.learning_rate, self.without)

    def learn(
        self, state: AdvanceState, episodes: EpisodeBatch, key: Key
    ) -> tuple[AdvanceState, Metrics]:
        """One step of the regressions."""
        return train(state, episodes, self.learning_rate, key)

    def examine(self, state: AdvanceState, episodes: EpisodeBatch) -> AdvanceState:
        """Measures the trust: compares credit with outcomes on new episodes."""
        return examine(state, episodes)

    def start(self, state: AdvanceState, num_envs: int) -> Int[Array, "batch"]:
        """How long the running episodes have lasted."""
        del state
        return jnp.zeros(num_envs, jnp.int32)

    def resume(self, state: AdvanceState, time: Int[Array, "batch"]) -> Int[Array, "batch"]:
        """How long the episodes have lasted."""
        del state
        return time

    def assign(
        self, state: AdvanceState, carry: Int[Array, "batch"], segment: Segment
    ) -> tuple[Assignment, Int[Array, "batch"]]:
        """What each transition adds to the potentials, and a share of what the end will pay."""
        first = jnp.asarray(segment.first)
        index = jnp.arange(len(first), dtype=jnp.int32)[:, None]
        begin = jax.lax.cummax(jnp.where(first, index, -carry[None]), axis=0)
        steps = index - begin
        time, _ = View(stride=state.stride).place(steps)
        action = None if segment.action is None else jnp.asarray(segment.action)
        prediction = state.steady(jnp.asarray(segment.observation), action, time)
        c, u, foreseen = state.trusted(prediction)
        return Assignment(reward=c + u + state.share(time), change=foreseen), steps[-1]

    def explain(self, state: AdvanceState, episodes: EpisodeBatch) -> Explanation:
        """The credit, the gains that it is made of, the baseline and the forecast."""
        batch, time = len(episodes.length), times(episodes)
        prediction = state.steady(episodes.observation, episodes.action, time)
        c, u, foreseen = state.trusted(prediction)
        start, end = jnp.zeros((1, batch)), jnp.full((1, batch), jnp.nan)

        def arriving(x: Array) -> Array:
            return jnp.concatenate([start, x])

        terms = {
            "credit": Term(arriving(c + u + foreseen + state.share(time)), "paid in advance"),
            "c": Term(arriving(c), "contribution c"),
            "u": Term(arriving(u), "contribution u of the action"),
            "foreseen": Term(arriving(foreseen), "gain of the forecast"),
            "forecast": Term(state.scale * prediction.forecast, "forecast of explained rewards"),
            "b": Term(
                jnp.concatenate([state.scale * prediction.b, end]), "baseline b", about="leaving"
            ),
        }
        return Explanation(terms, credit="credit")

    def report(self, state: AdvanceState) -> Metrics:
        """The trust of each potential, and the mean reward that is still unpaid at the end."""
        c, u, forecast = state.trust
        return {
            "trust": c,
            "trust_action": u,
            "trust_forecast": forecast,
            "at_end": state.at_end,
        }
