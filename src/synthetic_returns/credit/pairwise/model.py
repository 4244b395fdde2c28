"""The pairwise model: c of two states, and d, what a state contributes to all later ones."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped

from synthetic_returns.credit.actions import ActionFeatures
from synthetic_returns.credit.encoders import Encoder, make_encoder
from synthetic_returns.credit.pairwise.regression import Regression, low_rank, plain
from synthetic_returns.credit.paper.sa_model import Mlp
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.nn.clock import clock_size, time_features
from synthetic_returns.nn.linear import affine
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key

__all__ = ["Form", "PairwiseModel"]

Form = Literal["plain", "low-rank"]


class PairwiseModel(eqx.Module):
    """c(s_k, s_t) and d(s_t), in standardised rewards.

    Attributes:
      encoder: observation to features.
      actions: actions to features; None where only states contribute.
      phi: what contributes, to the factors of its contributions; None in the plain form.
      psi: what is contributed to, to the factors that take them up; None in the plain form.
      pair: two states together to c; None in the form of low rank.
      d: features to the sum of contributions to later rewards, for each action if there are any.
      max_steps: the largest number of states with a successor in an episode.
      stride: how many steps of the task lie between two states.
    """

    encoder: Encoder
    actions: ActionFeatures | None
    phi: eqx.nn.Linear | None
    psi: eqx.nn.Linear | None
    pair: Mlp | None
    d: eqx.nn.Linear
    max_steps: int = eqx.field(static=True)
    stride: int = eqx.field(static=True)

    def __init__(
        self,
        spec: EpisodeSpec,
        encoder: TorsoSettings,
        *,
        form: Form,
        rank: int,
        head_sizes: tuple[int, ...],
        with_actions: bool,
        key: Key,
    ):
        """Draws the parameters.

        Args:
          spec: of the episodes.
          encoder: sizes of the encoder.
          form: how c is made of two states.
          rank: of c, in the form of low rank.
          head_sizes: hidden units of c in the plain form.
          with_actions: whether a state contributes together with the action in it.
          key: consumed here.
        """
        keys = jax.random.split(key, 5)
        self.encoder, size = make_encoder(spec, encoder, key=keys[0])
        self.actions = ActionFeatures(spec) if with_actions else None
        past = size + (self.actions.size if self.actions else 0)
        current = past + clock_size(spec.max_steps)
        self.phi = self.psi = self.pair = None
        if form == "low-rank":
            self.phi = eqx.nn.Linear(past, rank, key=keys[1])
            self.psi = _silent(eqx.nn.Linear(current, rank, key=keys[2]))
        else:
            pair = Mlp(past + current, head_sizes, key=keys[3])
            self.pair = eqx.tree_at(lambda m: m.layers[-1], pair, _silent(pair.layers[-1]))
        outputs = (spec.num_actions or 1) if with_actions else 1
        self.d = _silent(eqx.nn.Linear(size, outputs, key=keys[4]))
        self.max_steps = spec.max_steps
        self.stride = spec.stride

    def utility(self, observation: Shaped[Array, "*shape"]) -> Float[Array, "*batch outputs"]:
        """``d(s)``, or ``U(s, a)`` of each action."""
        return affine(self.d, jax.lax.stop_gradient(self.encoder(observation)))

    def sides(
        self,
        observation: Shaped[Array, "time batch *shape"],
        action: Shaped[Array, "time batch *action"] | None,
    ) -> tuple[Float[Array, "time batch features"], Float[Array, "time batch timed"]]:
        """What of each step contributes, and what is contributed to, which knows the time."""
        past = self.encoder(observation)
        if self.actions is not None:
            past = jnp.concatenate([past, self.actions(action, past)], axis=-1)
        clock = time_features(jnp.arange(len(past), dtype=jnp.int32), self.max_steps)
        clock = jnp.broadcast_to(clock[:, None], (*past.shape[:2], clock.shape[-1]))
        return past, jnp.concatenate([past, clock], axis=-1)

    def pairs(
        self,
        past: Float[Array, "time batch features"],
        current: Float[Array, "time batch timed"],
    ) -> Float[Array, "past time batch"]:
        """The matrix of c(s_k, s_t), by k and t; only k <= t means anything."""
        if self.phi is not None and self.psi is not None:
            return jnp.einsum("kbr,tbr->ktb", affine(self.phi, past), affine(self.psi, current))
        assert self.pair is not None
        time, batch = past.shape[:2]
        first = jnp.broadcast_to(past[:, None], (time, time, batch, past.shape[-1]))
        second = jnp.broadcast_to(current[None], (time, time, batch, current.shape[-1]))
        return self.pair(jnp.concatenate([first, second], axis=-1))

    def regress(
        self,
        observation: Shaped[Array, "time batch *shape"],
        action: Shaped[Array, "time batch *action"] | None,
        reward: Float[Array, "time batch"],
        valid: Bool[Array, "time batch"],
        *,
        multi_stage: bool,
    ) -> Regression:
        """Eq. (regression_model) on whole episodes."""
        past, current = self.sides(observation, action)
        if self.phi is None or self.psi is None:
            return plain(self.pairs(past, current), reward, valid, multi_stage=multi_stage)
        phi, psi = affine(self.phi, past), affine(self.psi, current)
        return low_rank(phi, psi, reward, valid, multi_stage=multi_stage)


def _silent(layer: eqx.nn.Linear) -> eqx.nn.Linear:
    """A layer that says 0 until it has learned something."""
    return eqx.tree_at(lambda x: (x.weight, x.bias), layer, replace_fn=jnp.zeros_like)
