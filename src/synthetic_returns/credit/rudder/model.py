"""The LSTM that predicts the return from every part of an episode so far."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.transitions import TransitionEncoder
from synthetic_returns.nn.clock import clock_size, time_features
from synthetic_returns.nn.linear import affine
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key

__all__ = ["Forecast", "ReturnModel"]

CLOSED = -3.0  # input gates begin by writing little, as in the authors' code
OUTPUTS = 3


class Forecast(eqx.Module):
    """What the model says after each transition, in standard deviations of the return.

    Attributes:
      whole: the return of the episode, less its usual value.
      so_far: the sum of the rewards up to here.
      soon: the sum of the next few rewards.
    """

    whole: Float[Array, "time batch"]
    so_far: Float[Array, "time batch"]
    soon: Float[Array, "time batch"]


class ReturnModel(eqx.Module):
    """The paper's LSTM: nothing is ever forgotten, and memory cells are read as they are.

    What a transition writes depends on the transition alone, and how much of it is written on the
    memory alone. So a cell is a sum over the past, and a prediction changes where something is
    written: at the event, not some time after it.

    Attributes:
      transitions: from transitions to features.
      write: from features and time to what is written.
      gate: from the memory to the input gates.
      read: from the memory to the predictions.
      max_steps: steps that the clock tells apart.
    """

    transitions: TransitionEncoder
    write: eqx.nn.Linear
    gate: eqx.nn.Linear
    read: eqx.nn.Linear
    max_steps: int = eqx.field(static=True)

    def __init__(self, spec: EpisodeSpec, encoder: TorsoSettings, size: int, *, key: Key):
        """Draws the parameters.

        Args:
          spec: of the episodes.
          encoder: sizes of the encoder.
          size: memory cells.
          key: consumed here.
        """
        encoder_key, write_key, gate_key, read_key = jax.random.split(key, 4)
        self.transitions = TransitionEncoder(spec, encoder, key=encoder_key)
        self.max_steps = spec.max_steps
        inputs = self.transitions.size + clock_size(self.max_steps)
        self.write = eqx.nn.Linear(inputs, size, key=write_key)
        gate = eqx.nn.Linear(size, size, key=gate_key)
        self.gate = eqx.tree_at(lambda layer: layer.bias, gate, jnp.full(size, CLOSED))
        # It predicts the usual return until it has learned something.
        self.read = eqx.tree_at(
            lambda layer: (layer.weight, layer.bias),
            eqx.nn.Linear(size, OUTPUTS, key=read_key),
            replace_fn=jnp.zeros_like,
        )

    def __call__(
        self,
        observation: Shaped[Array, "states batch *shape"],
        action: Shaped[Array, "time batch *action"] | None,
        time: Int[Array, "time batch"],
        first: Bool[Array, "time batch"],
        memory: Float[Array, "batch size"],
    ) -> tuple[Forecast, Forecast, Float[Array, "batch size"]]:
        """Reads T transitions.

        Args:
          observation: the T + 1 states.
          action: what was done in the first T.
          time: how long the episode of each source state has lasted.
          first: whether a transition is the first of its episode.
          memory: the cells before the first transition.

        Returns:
          The predictions before and after each transition, and the cells after the last.
        """
        x = self.transitions(observation, action, first)
        x = jnp.concatenate([x, time_features(time, self.max_steps)], axis=-1)
        written = jnp.tanh(affine(self.write, x))

        def step(
            memory: Float[Array, "batch size"], inputs: tuple[Array, Array]
        ) -> tuple[Array, tuple[Array, Array]]:
            written, first = inputs
            before = jnp.where(first[:, None], 0, memory)
            after = before + jax.nn.sigmoid(affine(self.gate, before)) * written
            return after, (before, after)

        memory, (before, after) = jax.lax.scan(step, memory, (written, first))
        return self._predict(before), self._predict(after), memory

    def _predict(self, memory: Float[Array, "time batch size"]) -> Forecast:
        whole, so_far, soon = jnp.moveaxis(affine(self.read, memory), -1, 0)
        return Forecast(whole, so_far, soon)
