"""The state-associative model: contribution ``c``, gate ``g`` and baseline ``b``."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from synthetic_returns.nn.linear import affine
from synthetic_returns.types import Key
from synthetic_returns.utils.checks import check_positive

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
        """``b(s_t)``: what the current state alone says about its reward."""
        ...


class StateAssociativeModel(eqx.Module):
    """The paper's model: ``c`` and ``b`` are 2 x 256 ReLU MLPs, ``g`` has one layer of 256.

    The representation of past states (the input of ``c``) may differ in size and kind from that of
    the current one (the input of ``g`` and ``b``).
    """

    c: "Mlp"
    g: "Mlp"
    b: "Mlp"

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


class Mlp(eqx.Module):
    """ReLU layers and a linear output of one unit, on arrays of any leading shape."""

    layers: tuple[eqx.nn.Linear, ...]

    def __init__(self, input_size: int, hidden: Sequence[int], *, key: Key):
        check_positive("the input size", input_size)
        for width in hidden:
            check_positive("a layer size", width)
        sizes = [input_size, *hidden, 1]
        keys = jax.random.split(key, len(sizes) - 1)
        self.layers = tuple(
            eqx.nn.Linear(n_in, n_out, key=k)
            for n_in, n_out, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
        )

    def __call__(self, x: Float[Array, "*batch size"]) -> Float[Array, "*batch"]:
        """Maps the last axis to one number."""
        *hidden, output = self.layers
        for layer in hidden:
            x = jax.nn.relu(affine(layer, x))
        return affine(output, x)[..., 0]

    def silent(self) -> "Mlp":
        """The same, but it says 0 until it has learned something."""
        return eqx.tree_at(
            lambda mlp: (mlp.layers[-1].weight, mlp.layers[-1].bias),
            self,
            replace_fn=jnp.zeros_like,
        )
