"""The features of a transition: what was done, and where it led."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped

from synthetic_returns.credit.actions import ActionFeatures
from synthetic_returns.credit.encoders import Encoder, make_encoder
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key

__all__ = ["TransitionEncoder"]


class TransitionEncoder(eqx.Module):
    """An action and the state that it led to, and the state that an episode starts in.

    With source and destination of every transition, data would not say whether a state counts for
    being arrived in or for being left: both add up to the same return. Credit for a state is due
    when it is arrived in.

    Attributes:
      states: observation to features.
      actions: actions to features; none where actions are not known.
      size: how many features a transition has.
    """

    states: Encoder
    actions: ActionFeatures
    size: int = eqx.field(static=True)

    def __init__(self, spec: EpisodeSpec, settings: TorsoSettings, *, key: Key):
        """Draws the parameters.

        Args:
          spec: of the episodes.
          settings: sizes of the encoder of states.
          key: consumed here.
        """
        self.states, size = make_encoder(spec, settings, key=key)
        self.actions = ActionFeatures(spec)
        self.size = 2 * size + self.actions.size

    def __call__(
        self,
        observation: Shaped[Array, "states batch *shape"],
        action: Shaped[Array, "time batch *action"] | None,
        first: Bool[Array, "time batch"],
    ) -> Float[Array, "time batch size"]:
        """The features of the T transitions between T + 1 states.

        Args:
          observation: the states.
          action: what was done in the first T of them.
          first: whether a transition is the first of its episode.
        """
        features = self.states(observation)
        return self.pair(features[:-1], action, features[1:], first)

    def pair(
        self,
        source: Float[Array, "time batch features"],
        action: Shaped[Array, "time batch *action"] | None,
        destination: Float[Array, "time batch features"],
        first: Bool[Array, "time batch"],
    ) -> Float[Array, "time batch size"]:
        """The features of transitions whose states are encoded already."""
        start = jnp.where(first[..., None], source, 0)
        return jnp.concatenate([start, destination, self.actions(action, source)], axis=-1)
