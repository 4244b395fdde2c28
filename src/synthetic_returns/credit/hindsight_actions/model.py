"""The hindsight distribution: how likely each action was, given its outcome."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from synthetic_returns.credit.encoders import Encoder, make_encoder
from synthetic_returns.credit.hindsight_actions.outcomes import Outcomes
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.nn.linear import affine
from synthetic_returns.nn.networks import MlpTorso
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key

Given = Literal["class", "features", "state", "return"]

__all__ = ["Given", "HindsightModel", "cross_entropy", "hindsight_log_probs", "taken"]


class HindsightModel(eqx.Module):
    """h(a | s, u), of rank R in pairs of a state s and an outcome u, and the reward of an action.

    ``h(a | s, u) = softmax(log pi(a | s) + phi_a(s) . psi(u))``: what an outcome says about the
    action is learned relative to the policy that acted, so that it stays true when the policy
    changes, and a model that has learned nothing gives no credit.

    Attributes:
      encoder: observation to features, of states as sources of actions.
      source: features to phi, R numbers for each action.
      outcome: what describes an outcome to features of it; None for classes, each with a psi of its
        own.
      outcome_head: these features to psi.
      reward_encoder: observation to the features that predict rewards.
      reward: these to the reward of each action, in standard deviations.
      num_actions: how many there are.
    """

    encoder: Encoder
    source: eqx.nn.Linear
    outcome: Encoder | None
    outcome_head: eqx.nn.Linear
    reward_encoder: Encoder
    reward: eqx.nn.Linear
    num_actions: int = eqx.field(static=True)

    def __init__(
        self,
        spec: EpisodeSpec,
        encoder: TorsoSettings,
        *,
        given: Given,
        classes: int,
        rank: int,
        key: Key,
    ):
        """Draws the parameters.

        Args:
          spec: of the episodes.
          encoder: sizes of the encoders.
          given: what describes an outcome: the class of its reward, the features that predict it
            together with the reward, its state, or the return.
          classes: of rewards, if these describe it.
          rank: of the model in pairs of states and outcomes.
          key: consumed here.
        """
        assert spec.num_actions is not None
        keys = jax.random.split(key, 6)
        self.encoder, size = make_encoder(spec, encoder, key=keys[0])
        self.reward_encoder, reward_size = make_encoder(spec, encoder, key=keys[1])
        self.source = eqx.nn.Linear(size, spec.num_actions * rank, key=keys[2])
        if given == "class":
            self.outcome, outcome_size = None, classes
        elif given == "state":
            self.outcome, outcome_size = make_encoder(spec, encoder, key=keys[3])
        else:
            inputs, outcome_size = 1 if given == "return" else reward_size + 1, encoder.sizes[-1]
            self.outcome = MlpTorso((inputs,), (outcome_size,), key=keys[3])
        self.outcome_head = _silent(eqx.nn.Linear(outcome_size, rank, key=keys[4]))
        self.reward = _silent(eqx.nn.Linear(reward_size, spec.num_actions, key=keys[5]))
        self.num_actions = spec.num_actions

    def phi(
        self, observation: Shaped[Array, "time batch *shape"]
    ) -> Float[Array, "time batch actions rank"]:
        """What of a state meets the outcomes, for each action."""
        x = affine(self.source, self.encoder(observation))
        return jnp.reshape(x, (*x.shape[:-1], self.num_actions, -1))

    def psi(self, described: Shaped[Array, "*shape"]) -> Float[Array, "*batch rank"]:
        """What of an outcome meets the states."""
        x = described if self.outcome is None else self.outcome(described)
        return affine(self.outcome_head, x)

    def rewards(
        self, observation: Shaped[Array, "time batch *shape"]
    ) -> tuple[Float[Array, "time batch actions"], Float[Array, "time batch features"]]:
        """The reward of each action, and the features that it is read from."""
        features = self.reward_encoder(observation)
        return affine(self.reward, features), features


def hindsight_log_probs(
    phi: Float[Array, "time batch actions rank"],
    log_pi: Float[Array, "time batch actions"],
    outcomes: Outcomes,
) -> Float[Array, "time outcomes batch actions"]:
    """The hindsight distribution of every step given every outcome: ``log h(a | s_t, u_n)``."""
    said = jnp.einsum("tbar,nbr->tnba", phi, outcomes.psi)
    log_pi = jnp.broadcast_to(log_pi[:, None], said.shape)
    return jax.nn.log_softmax(log_pi + said)


def taken(
    x: Float[Array, "time *axes batch actions"], action: Int[Array, "time batch"]
) -> Float[Array, "time *axes batch"]:
    """The entries of the actions that were taken."""
    one_hot = jax.nn.one_hot(action, x.shape[-1], dtype=x.dtype)
    between = (1,) * (x.ndim - 3)
    one_hot = jnp.reshape(one_hot, (len(one_hot), *between, *one_hot.shape[1:]))
    return jnp.sum(jnp.where(one_hot > 0, x, 0), axis=-1)


def cross_entropy(
    log_h: Float[Array, "time outcomes batch actions"],
    action: Int[Array, "time batch"],
    count: Float[Array, "time outcomes batch"],
) -> Float[Array, ""]:
    """How unlikely the actions taken are in hindsight, on average over the pairs that exist."""
    return -jnp.sum(count * taken(log_h, action)) / jnp.maximum(jnp.sum(count), 1)


def _silent(layer: eqx.nn.Linear) -> eqx.nn.Linear:
    """A layer that says 0 until it has learned something."""
    return eqx.tree_at(lambda x: (x.weight, x.bias), layer, replace_fn=jnp.zeros_like)
