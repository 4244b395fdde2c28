"""What a credit method says about the states of episodes, as named terms."""

from typing import Literal

import equinox as eqx
import jax
from jaxtyping import Array, Shaped

__all__ = ["Explanation", "Term"]

Kind = Literal["line", "gate", "pairs", "actions"]
About = Literal["arriving", "leaving"]


class Term(eqx.Module):
    """One thing that a method says about every state.

    Attributes:
      values: ``[T, B]`` for a line or a gate, ``[T, B, A]`` for a value per action, ``[T, B, T]``
        for pairs: the row of a state holds what every state contributes to it. Of a single episode
        the axis B is left out. In units of reward, but for a gate.
      label: what it is, for people.
      kind: how it is drawn. line: a number per state; gate: a number in [0, 1] per state; pairs: a
        matrix of states; actions: a number per action of each state.
      about: whether the entry of a state is about arriving in it or about leaving it. What is
        about leaving is not known of a terminal state.
    """

    values: Shaped[Array, "..."]
    label: str = eqx.field(static=True)
    kind: Kind = eqx.field(static=True, default="line")
    about: About = eqx.field(static=True, default="arriving")


class Explanation(eqx.Module):
    """The terms of a method, by name, in the order in which they are shown.

    Attributes:
      terms: by name.
      credit: name of the term that is the credit itself: what the agent is paid for arriving in
        each state.
    """

    terms: dict[str, Term]
    credit: str = eqx.field(static=True)

    @property
    def paid(self) -> Shaped[Array, "..."]:
        """The credit of each state."""
        return self.terms[self.credit].values

    def episode(self, column: int) -> "Explanation":
        """The explanation of one episode of a batch."""
        return jax.tree.map(lambda x: x[:, column], self)
