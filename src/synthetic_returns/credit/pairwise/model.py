"""The pairwise model: c of two states, and d, what a state contributes to all later ones."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped

from synthetic_returns.credit.actions import ActionFeatures
from synthetic_returns.credit.encoders import Encoder, make_encoder
from synthetic_returns.credit.pairwise.regression import Regression, low_rank, plain
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.nn.clock import clock_size, time_features
from synthetic_returns.nn.linear import affine
from synthetic_returns.nn.mlp import Mlp
from synthetic_returns.nn.networks import MlpTorso
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key

__all__ = ["Form", "PairwiseModel"]

Form = Literal["plain", "low-rank"]


class PairwiseModel(eqx.Module):
    """c(s_k, s_t) and d(s_t), in standardised rewards.

    Attributes:
      encoder: observation to features.
      actions: actions to features; None where only states contribute.
      joint: features of a state, an action and the time, to those of all; None without actions.
      phi: what contributes, to the factors of its contributions; None in the plain form.
      psi: what is contributed to, to the factors that take them up; None in the plain form.
      pair: two states together to c; None in the form of low rank.
      d: features to the sum of contributions to later rewards, for each action if there are any.
      max_steps: the largest number of states with a successor in an episode.
    """

    encoder: Encoder
    actions: ActionFeatures | None
    joint: MlpTorso | None
    phi: eqx.nn.Linear | None
    psi: eqx.nn.Linear | None
    pair: Mlp | None
    d: eqx.nn.Linear
    max_steps: int = eqx.field(static=True)

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
        keys = jax.random.split(key, 6)
        self.encoder, size = make_encoder(spec, encoder, key=keys[0])
        self.actions = ActionFeatures(spec) if with_actions else None
        timed, self.joint = size + clock_size(spec.max_steps), None
        if self.actions is not None:
            self.joint = MlpTorso((timed + self.actions.size,), (size,), key=keys[5])
            timed = size
        self.phi = self.psi = self.pair = None
        if form == "low-rank":
            self.phi = eqx.nn.Linear(timed, rank, key=keys[1])
            self.psi = _silent(eqx.nn.Linear(timed, rank, key=keys[2]))
        else:
            pair = Mlp(2 * timed, head_sizes, key=keys[3])
            self.pair = eqx.tree_at(lambda m: m.layers[-1], pair, _silent(pair.layers[-1]))
        outputs = (spec.num_actions or 1) if with_actions else 1
        self.d = _silent(eqx.nn.Linear(size, outputs, key=keys[4]))
        self.max_steps = spec.max_steps

    def utility(self, observation: Shaped[Array, "*shape"]) -> Float[Array, "*batch outputs"]:
        """``d(s)``, or ``U(s, a)`` of each action."""
        return affine(self.d, jax.lax.stop_gradient(self.encoder(observation)))

    def steps(
        self,
        observation: Shaped[Array, "time batch *shape"],
        action: Shaped[Array, "time batch *action"] | None,
    ) -> Float[Array, "time batch features"]:
        """What of each step contributes and is contributed to, the time included."""
        x = self.encoder(observation)
        clock = time_features(jnp.arange(len(x), dtype=jnp.int32), self.max_steps)
        clock = jnp.broadcast_to(clock[:, None], (*x.shape[:2], clock.shape[-1]))
        timed = jnp.concatenate([x, clock], axis=-1)
        if self.actions is None or self.joint is None:
            return timed
        return self.joint(jnp.concatenate([timed, self.actions(action, x)], axis=-1))

    def pairs(self, steps: Float[Array, "time batch features"]) -> Float[Array, "past time batch"]:
        """The matrix of c(s_k, s_t), by k and t; only k <= t means anything."""
        if self.phi is not None and self.psi is not None:
            return jnp.einsum("kbr,tbr->ktb", affine(self.phi, steps), affine(self.psi, steps))
        assert self.pair is not None
        shape = (len(steps), *steps.shape)
        first, second = (jnp.broadcast_to(x, shape) for x in (steps[:, None], steps[None]))
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
        steps = self.steps(observation, action)
        if self.phi is None or self.psi is None:
            return plain(self.pairs(steps), reward, valid, multi_stage=multi_stage)
        phi, psi = affine(self.phi, steps), affine(self.psi, steps)
        return low_rank(phi, psi, reward, valid, multi_stage=multi_stage)


def _silent(layer: eqx.nn.Linear) -> eqx.nn.Linear:
    """A layer that says 0 until it has learned something."""
    return eqx.tree_at(lambda x: (x.weight, x.bias), layer, replace_fn=jnp.zeros_like)
