"""TVT: temporal value transport along the reads of a memory."""

import dataclasses
import functools
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from synthetic_returns.agents.optimizers import steady_adam
from synthetic_returns.credit.data.episode import EpisodeBatch, Segment, whole_episodes
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.method import Assignment, CreditMethod, Metrics, Need
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.tvt.model import MemoryModel, Reads
from synthetic_returns.credit.tvt.transport import transport_from, transported
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key
from synthetic_returns.utils.averages import explained_variance, masked_mean, tracked, unit_of
from synthetic_returns.utils.checks import (
    check_not_negative,
    check_positive,
    check_positive_number,
    check_share,
)

MOST_UNUSUAL = 30.0  # standard deviations

__all__ = ["Tvt", "TvtState", "discounted_returns"]


class TvtState(eqx.Module):
    """The memory, and the units in which it measures returns.

    Attributes:
      model: the memory.
      optimizer: Adam's state.
      mean: running mean of the discounted returns.
      variance: running mean of their squared distance from it.
      usual: running mean of all that codes are made of.
      spread: running mean of the squared distance from that.
      updates: how many there were.
    """

    model: MemoryModel
    optimizer: optax.OptState
    mean: Float[Array, ""]
    variance: Float[Array, ""]
    usual: Float[Array, "shown"]
    spread: Float[Array, "shown"]
    updates: Int[Array, ""]

    @property
    def scale(self) -> Float[Array, ""]:
        """The unit of values and rewards."""
        return unit_of(self.variance)

    def measured(self, episodes: EpisodeBatch, returns: Float[Array, "time batch"]) -> "TvtState":
        """With what a batch of episodes says about the size of returns and observations."""
        valid, track = episodes.valid, functools.partial(tracked, count=self.updates)
        mean = track(self.mean, masked_mean(returns, valid))
        variance = track(self.variance, masked_mean(jnp.square(returns - mean), valid))
        state = eqx.tree_at(lambda s: (s.mean, s.variance), self, (mean, variance))
        shown = self.model.shown(episodes, state.scale)
        entries = jax.vmap(masked_mean, in_axes=(-1, None))
        usual = track(self.usual, entries(shown, valid))
        spread = track(self.spread, entries(jnp.square(shown - usual[None, None]), valid))
        return eqx.tree_at(lambda s: (s.usual, s.spread), state, (usual, spread))

    def unusual(self, shown: Float[Array, "time batch shown"]) -> Float[Array, "time batch shown"]:
        """What codes are made of, in standard deviations of each entry.

        So what happens rarely, as taking a key does, has to be remembered as well as what is seen
        all the time.
        """
        per_unit = jax.lax.rsqrt(jnp.maximum(self.spread, 1e-12))
        apart = (shown - self.usual[None, None]) * per_unit[None, None]
        return jnp.clip(apart, -MOST_UNUSUAL, MOST_UNUSUAL)


def discounted_returns(
    reward: Float[Array, "time batch"], discount: float
) -> Float[Array, "time batch"]:
    """``G_t``, the sum over k >= 0 of ``discount^k r_t+k``; rewards behind the end are 0."""

    def step(later: Array, reward: Array) -> tuple[Array, Array]:
        now = reward + discount * later
        return now, now

    _, returns = jax.lax.scan(step, jnp.zeros_like(reward[0]), reward, reverse=True)
    return returns


@dataclasses.dataclass(frozen=True)
class Tvt(CreditMethod):
    """Temporal value transport: a remembered step is paid its share of the value at the read.

    A memory keeps a code of every state. At each step it is read by content, and what is read
    helps to predict the discounted return. Where a read is sharp and looks further back than
    the discount reaches, the step that is read is paid ``alpha w V``: the share of the read that it
    had, of the value at the time of the read. An episode of T steps takes O(T^2).
    """

    name: ClassVar[str] = "tvt"
    summary: ClassVar[str] = "memory reads carry value back"
    reference: ClassVar[str] = "Hung et al. 2019"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.WHOLE_EPISODES})
    uses: ClassVar[frozenset[Need]] = frozenset({Need.ACTIONS})

    replay: Replay = dataclasses.field(default=Replay(updates_per_episode=1.0))
    """The episodes that it learns from."""
    encoder: TorsoSettings = dataclasses.field(default=TorsoSettings(sizes=(128, 64)))
    """From observations to features."""
    code: int = 64
    """Numbers that the memory keeps of a state."""
    heads: int = 1
    """Reads at each step."""
    discount: float = 0.9
    """Discount of the predicted returns."""
    horizon: int = 10
    """Reads that look no further back transport nothing: the agent's own discount reaches there. A
    discount of 0.9 reaches about 1 / (1 - 0.9) steps far."""
    threshold: float = 1.0
    """Reads that are less sharp transport nothing. 1 is a strength of log T: of T states, one that
    matches what is looked for then outweighs all that do not."""
    alpha: float = 0.9
    """The share of the value that is transported."""
    strength_cost: float = 3e-4
    """Of the strength of reads, so that none is sharp for no reason."""
    reconstruction_cost: float = 1.0
    """Of the error with which states are reconstructed from their codes."""
    learning_rate: float = 3e-3
    """Step size of Adam."""

    def __post_init__(self) -> None:
        check_positive("code", self.code)
        check_positive("heads", self.heads)
        check_positive_number("learning_rate", self.learning_rate)
        check_share("discount", self.discount)
        for name in ("alpha", "threshold", "strength_cost", "reconstruction_cost"):
            check_not_negative(name, getattr(self, name))
        if self.horizon < 0:
            raise ValueError(f"horizon is {self.horizon}; it must be 0 or more steps.")

    def init(self, spec: EpisodeSpec, key: Key) -> TvtState:
        """Draws the parameters."""
        model = MemoryModel(spec, self.encoder, code=self.code, heads=self.heads, key=key)
        optimizer = steady_adam(self.learning_rate).init(eqx.filter(model, eqx.is_array))
        zero, entries = jnp.zeros(()), jnp.zeros(model.decoder.out_features)  # pyright: ignore
        return TvtState(
            model, optimizer, zero, jnp.ones(()), entries, entries, jnp.zeros((), jnp.int32)
        )

    def learn(self, state: TvtState, episodes: EpisodeBatch, key: Key) -> tuple[TvtState, Metrics]:
        """One step of all losses: reconstruction, value, and the strength of reads."""
        del key
        valid = episodes.valid
        returns = discounted_returns(jnp.where(valid, episodes.reward, 0), self.discount)
        state = state.measured(episodes, returns)
        shown = state.model.shown(episodes, state.scale)
        unusual = state.unusual(shown)
        target = (returns - state.mean) / state.scale

        def loss(model: MemoryModel):
            code = model.codes(episodes, shown)
            reads = model(code, valid)
            missed = jnp.mean(jnp.square(model.reconstructed(code) - unusual), axis=-1)
            missed = masked_mean(missed, valid)
            wrong = masked_mean(jnp.square(reads.value - target), valid)
            strength = jnp.sum(reads.strengths, axis=-1)
            metrics = {
                "value_error": wrong,
                "explained_value": explained_variance(target, reads.value, valid),
                "reconstruction_error": missed,
                "strength": masked_mean(jnp.max(reads.strengths, axis=-1), valid),
            }
            total = wrong + self.reconstruction_cost * missed
            return total + self.strength_cost * masked_mean(strength, valid), metrics

        grads, metrics = eqx.filter_grad(loss, has_aux=True)(state.model)
        updates, optimizer = steady_adam(self.learning_rate).update(grads, state.optimizer)
        return (
            eqx.tree_at(
                lambda s: (s.model, s.optimizer, s.updates),
                state,
                (eqx.apply_updates(state.model, updates), optimizer, state.updates + 1),
            ),
            metrics,
        )

    def assign(self, state: TvtState, carry: None, segment: Segment) -> tuple[Assignment, None]:
        """What the state arrived in was given by later reads, in whole episodes."""
        given, *_ = self.transports(state, whole_episodes(segment))
        credit = jnp.sum(given, axis=0).T
        arrived = jnp.concatenate([credit[1:], jnp.zeros_like(credit[:1])])
        return Assignment(reward=jnp.where(state.updates > 0, arrived, 0)), carry

    def transports(
        self, state: TvtState, episodes: EpisodeBatch
    ) -> tuple[
        Float[Array, "time batch read"], Float[Array, "time batch"], Float[Array, "time batch"]
    ]:
        """What each step gives to each earlier one, the values, and which heads transport."""
        reads = self.reads(state, episodes)
        value = jnp.where(episodes.valid, state.mean + state.scale * reads.value, 0)
        # In units of what it takes to tell one state from all others of the episode.
        states = jnp.log(jnp.maximum(episodes.length, 2).astype(jnp.float32))
        sharpness = reads.strengths / states[None, :, None]
        sharpness = jnp.where(episodes.valid[..., None], sharpness, 0)
        sources = transport_from(
            reads.weights, sharpness, threshold=self.threshold, horizon=self.horizon
        )
        given = transported(reads.weights, value, sources, alpha=self.alpha, horizon=self.horizon)
        return given, value, jnp.any(sources, axis=-1).astype(jnp.float32)

    def reads(self, state: TvtState, episodes: EpisodeBatch) -> Reads:
        """The reads of whole episodes."""
        code = state.model.codes(episodes, state.model.shown(episodes, state.scale))
        return state.model(code, episodes.valid)

    def explain(self, state: TvtState, episodes: EpisodeBatch) -> Explanation:
        """What was transported, from where to where, and the values."""
        given, value, sources = self.transports(state, episodes)
        time, batch = value.shape
        pairs = jnp.zeros((time + 1, batch, time + 1)).at[:-1, :, :-1].set(given)
        unknown = jnp.full((1, batch), jnp.nan)
        credit = jnp.concatenate([jnp.sum(given, axis=0).T, jnp.zeros((1, batch))])
        terms = {
            "transported": Term(credit, "value transported here"),
            "pairs": Term(pairs, "value transported by a read", "pairs", "leaving"),
            "value": Term(jnp.concatenate([value, unknown]), "discounted return foretold",
                          "line", "leaving"),
            "reads": Term(jnp.concatenate([sources, unknown]), "a read that transports", "gate",
                          "leaving"),
        }  # fmt: skip
        return Explanation(terms, credit="transported")
