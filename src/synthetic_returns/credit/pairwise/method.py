"""Pairwise state-associative learning, and policies from it alone."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from synthetic_returns.credit.data.episode import EpisodeBatch, Segment
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.method import Assignment, CreditMethod, Gives, Metrics, Need
from synthetic_returns.credit.pairwise.model import Form, PairwiseModel
from synthetic_returns.credit.pairwise.state import PairwiseState, train
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key
from synthetic_returns.utils.checks import check_positive, check_positive_number, check_sizes
from synthetic_returns.utils.meanings import NoMeaning

__all__ = ["Pairwise", "SaAlone"]


@dataclasses.dataclass(frozen=True)
class Pairwise(CreditMethod):
    """State-associative learning of pairs, as in the paper's supplement.

    Every reward is a sum of contributions of the states so far, Eq. (regression_model):
    ``r_t = sum over k <= t of c(s_k, s_t)``. ``d(s_t)``, Eq. (D_hat), predicts what a state
    contributes to all later rewards; the agent is paid ``d`` when it arrives in the state.
    """

    name: ClassVar[str] = "pairwise"
    summary: ClassVar[str] = "c of pairs of states, predicted by d"
    reference: ClassVar[str] = "Raposo et al. 2021"
    with_actions: ClassVar[bool] = False

    replay: Replay = dataclasses.field(default=Replay(updates_per_episode=2.0))
    """The episodes that it learns from."""
    form: Form = "low-rank"
    """How c depends on two states. low-rank: the inner product of a vector for each, O(T) for an
    episode. plain: a network that sees both, O(T^2)."""
    rank: int = 16
    """Length of the vectors of the low-rank form."""
    multi_stage: bool = False
    """Fit each contribution to the residual of earlier states, so that the first state that
    predicts a reward gets the credit for it."""
    encoder: TorsoSettings = dataclasses.field(default=TorsoSettings(sizes=(128, 64)))
    """From observations to features."""
    head_sizes: tuple[int, ...] = (64,)
    """Hidden units of c in the plain form."""
    learning_rate: float = 1e-3
    """Learning rate of Adam."""

    def __post_init__(self) -> None:
        check_positive("rank", self.rank)
        check_sizes("head_sizes", self.head_sizes)
        check_positive_number("learning_rate", self.learning_rate)

    def meaningless(self) -> dict[str, NoMeaning]:
        """The settings of the other form."""
        if self.form == "plain":
            why = "in which a network sees both states and no vector stands for one"
            return {"rank": NoMeaning("form", why, "form low-rank")}
        return {"head_sizes": NoMeaning("form", "whose c has no hidden units", "form plain")}

    def init(self, spec: EpisodeSpec, key: Key) -> PairwiseState:
        """Draws the parameters."""
        model = PairwiseModel(
            spec,
            self.encoder,
            form=self.form,
            rank=self.rank,
            head_sizes=self.head_sizes,
            with_actions=self.with_actions,
            key=key,
        )
        return PairwiseState.init(model, self.learning_rate)

    def learn(
        self, state: PairwiseState, episodes: EpisodeBatch, key: Key
    ) -> tuple[PairwiseState, Metrics]:
        """One step of both regressions."""
        del key
        return train(
            state, episodes, multi_stage=self.multi_stage, learning_rate=self.learning_rate
        )

    def assign(
        self, state: PairwiseState, carry: None, segment: Segment
    ) -> tuple[Assignment, None]:
        """``d`` of each state arrived in."""
        return Assignment(reward=self.of_states(state, jnp.asarray(segment.arrived))), carry

    def of_states(
        self, state: PairwiseState, observation: Shaped[Array, "*shape"]
    ) -> Float[Array, "*batch"]:
        """``d`` of any states."""
        return state.scale * state.model.utility(observation)[..., 0]

    def explain(self, state: PairwiseState, episodes: EpisodeBatch) -> Explanation:
        """``d``, the matrix of ``c``, and the predicted reward."""
        d = Term(self.of_states(state, episodes.observation), "contribution d")
        return Explanation({"d": d, **self.regressed(state, episodes)}, credit="d")

    def regressed(self, state: PairwiseState, episodes: EpisodeBatch) -> dict[str, Term]:
        """What Eq. (regression_model) says about whole episodes."""
        steps = state.model.steps(episodes.source, episodes.action)
        c = state.scale * jnp.transpose(state.model.pairs(steps), (1, 2, 0))
        time, batch = episodes.reward.shape
        so_far = jnp.tril(jnp.ones((time, time), bool))[:, None]
        c = jnp.where(so_far & episodes.valid[..., None], c, 0)
        matrix = jnp.zeros((time + 1, batch, time + 1)).at[:-1, :, :-1].set(c)
        r_hat = jnp.sum(matrix, axis=2).at[-1].set(jnp.nan)
        return {
            "pairs": Term(matrix, "contribution c of one state to another", "pairs", "leaving"),
            "r_hat": Term(r_hat, "predicted reward", about="leaving"),
        }


@dataclasses.dataclass(frozen=True)
class SaAlone(Pairwise):
    """Policies from state-associative learning alone, Sec. (sa_alone) of the paper's supplement.

    States contribute together with the actions in them, and the utility ``U(s, a)`` is the sum of
    what they contribute, their own reward included. The policy moves towards the action of the
    highest utility: advantages are ``U(s, a)`` minus their mean, no temporal difference is used.
    """

    name: ClassVar[str] = "sa-alone"
    summary: ClassVar[str] = "policies from contributions alone"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ACTIONS})
    gives: ClassVar[Gives] = Gives.ADVANTAGE
    with_actions: ClassVar[bool] = True

    multi_stage: bool = True
    """Fit each contribution to the residual of earlier states. In a single stage, only the last
    action that a reward depends on gets credit, and nothing leads the agent there."""

    def assign(
        self, state: PairwiseState, carry: None, segment: Segment
    ) -> tuple[Assignment, None]:
        """The advantages of all actions."""
        left = jnp.asarray(segment.observation)[:-1]
        return Assignment(advantage=self.advantage(state, left)), carry

    def advantage(
        self, state: PairwiseState, observation: Shaped[Array, "*shape"]
    ) -> Float[Array, "*batch actions"]:
        """``U(s, a)`` from its mean over the actions."""
        utility = state.scale * state.model.utility(observation)
        return utility - jnp.mean(utility, axis=-1, keepdims=True)

    def of_states(
        self, state: PairwiseState, observation: Shaped[Array, "*shape"]
    ) -> Float[Array, "*batch"]:
        """Credit belongs to actions, not to states."""
        del state
        return jnp.full(observation.shape[:1], jnp.nan)

    def explain(self, state: PairwiseState, episodes: EpisodeBatch) -> Explanation:
        """The advantages, the matrix of ``c``, and the predicted reward."""
        advantage = self.advantage(state, episodes.observation)
        term = Term(advantage, "utility of each action, from its mean", "actions", "leaving")
        return Explanation({"advantage": term, **self.regressed(state, episodes)}, "advantage")
