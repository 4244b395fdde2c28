"""The state-associative model: contribution ``c``, gate ``g`` and baseline ``b``."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
from jaxtyping import Array, Float

from synthetic_returns.nn.mlp import Mlp
from synthetic_returns.types import Key

__all__ = ["ContributionModel", "StateAssociativeModel"]


@runtime_checkable
class ContributionModel(Protocol):
    """What `associate` needs of a model; bring your own parameters and framework."""

    def contribution(self, past: Float[Array, "*batch past"]) -> Float[Array, "*batch"]:
        """``c(s_k)``: how much a state adds to the reward of a later one."""
        ...

    def gate(self, current: Float[Array, "*batch current"]) -> Float[Array, "*batch"]:
        """``g(s_t)`` in [0, 1]: whether past states matter for the reward here."""
        ...

    def baseline(self, current: Float[Array, "*batch current"]) -> Float[Array, "*batch"]:
        """``b(s_t)``: the reward predicted from the current state alone."""
        ...


class StateAssociativeModel(eqx.Module):
    """The paper's model: ``c`` and ``b`` are 2 x 256 ReLU MLPs, ``g`` has one layer of 256.

    The representation of past states (the input of ``c``) may differ in size and kind from that of
    the current one (the input of ``g`` and ``b``).
    """

    c: Mlp
    g: Mlp
    b: Mlp

    def __init__(
        self,
        past_size: int,
        current_size: int | None = None,
        *,
        contribution_layers: Sequence[int] = (256, 256),
        gate_layers: Sequence[int] = (256,),
        baseline_layers: Sequence[int] = (256, 256),
        key: Key,
    ):
        """Draws the parameters.

        Args:
          past_size: features of a stored state.
          current_size: features of the current state; by default as many as ``past_size``.
          contribution_layers: hidden sizes of ``c``.
          gate_layers: hidden sizes of ``g``.
          baseline_layers: hidden sizes of ``b``.
          key: consumed here.
        """
        current_size = past_size if current_size is None else current_size
        c_key, g_key, b_key = jax.random.split(key, 3)
        self.c = Mlp(past_size, contribution_layers, key=c_key)
        self.g = Mlp(current_size, gate_layers, key=g_key)
        self.b = Mlp(current_size, baseline_layers, key=b_key)

    def contribution(self, past: Float[Array, "*batch past"]) -> Float[Array, "*batch"]:
        """``c(s_k)``."""
        return self.c(past)

    def gate(self, current: Float[Array, "*batch current"]) -> Float[Array, "*batch"]:
        """``g(s_t)``."""
        return jax.nn.sigmoid(self.g(current))

    def baseline(self, current: Float[Array, "*batch current"]) -> Float[Array, "*batch"]:
        """``b(s_t)``."""
        return self.b(current)
