"""What a credit method says about the states of episodes, as named terms."""

import html
from collections import OrderedDict
from collections.abc import Mapping
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Shaped

from synthetic_returns.credit.settlement import at_ends
from synthetic_returns.utils.notebook import bars_svg, facts_table

__all__ = ["KINDS", "Explanation", "Term"]

Kind = Literal["line", "gate", "pairs", "actions"]
About = Literal["arriving", "leaving"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Term(eqx.Module):
    """One quantity that a method computes for every state.

    Attributes:
      values: ``[T, B]`` for a line or a gate, ``[T, B, A]`` for a value per action, ``[T, B, T]``
        for pairs: the row of a state holds what every state contributes to it. Of a single episode
        the axis B is left out. In units of reward, but for a gate.
      label: what it is, for people.
      kind: how it is drawn. line: a number per state; gate: a number in [0, 1] per state; pairs: a
        matrix of states; actions: a number per action of each state.
      about: whether the entry of a state is about arriving in it or about leaving it. A terminal
        state has no entry about leaving.
      steps: number of rewards that a line about leaving predicts the sum of; 1 is the next alone.
      stride: number of successive states that share one entry, counted from the start.
    """

    values: Shaped[Array, "..."] | Shaped[np.ndarray, "..."]
    label: str = eqx.field(static=True)
    kind: Kind = eqx.field(static=True, default="line")
    about: About = eqx.field(static=True, default="arriving")
    steps: int = eqx.field(static=True, default=1)
    stride: int = eqx.field(static=True, default=1)

    def cut(self, states: int) -> "Term":
        """The states of one episode ``[T, ...]`` up to its end, as a numpy array."""
        values = np.array(self.values)[:states]
        if self.kind == "pairs":
            values = values[:, :states]
        if self.about == "leaving":
            values[-1] = np.nan
        return self.with_values(values)

    def per_state(self) -> np.ndarray:
        """One number for each state of one episode, for drawings that have room for no more.

        Of pairs, what a state contributes to all others; of actions, how much depends on the
        choice.
        """
        values = np.asarray(self.values)
        if self.kind == "pairs":
            return np.nansum(values, axis=0)
        if self.kind == "actions":
            return np.max(values, axis=1) - np.min(values, axis=1)
        return values

    @property
    def title(self) -> str:
        """The label, and how many rewards it is about, if these are several."""
        several = self.kind == "line" and self.steps > 1
        return f"{self.label} of the next {self.steps} steps" if several else self.label

    def with_values(self, values: np.ndarray) -> "Term":
        """The same term with other values."""
        return Term(values, self.label, self.kind, self.about, self.steps, self.stride)


def _in_order(terms: Mapping[str, Term]) -> OrderedDict[str, Term]:
    """JAX sorts the names of a plain dict, and the order says what is shown first."""
    return OrderedDict(terms)


class Explanation(eqx.Module):
    """The terms of a method, by name, in the order in which they are shown.

    Attributes:
      terms: by name; none where there is no credit.
      credit: name of the term that is the credit itself: what the agent is paid for arriving in
        each state.
    """

    terms: Mapping[str, Term] = eqx.field(converter=_in_order, default_factory=dict)
    credit: str | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.credit is not None and self.credit not in self.terms:
            raise ValueError(
                f"credit is {self.credit!r} and the terms are {', '.join(self.terms) or 'none'}; "
                "name one of them."
            )

    @property
    def paid(self) -> Shaped[Array, "..."] | Shaped[np.ndarray, "..."]:
        """The credit of each state."""
        if self.credit is None:
            raise ValueError("there is no credit to look at; check `credit` for None first.")
        return self.terms[self.credit].values

    def with_credit(self, values: Array) -> "Explanation":
        """The same with other credit."""
        return eqx.tree_at(lambda e: e.terms[e.credit].values, self, values)

    def earned(self, last: Bool[Array, "states ..."]) -> "Explanation":
        """The same with credit as it is earned: that of terminal states is nothing.

        Args:
          last: whether an episode ends in each state.
        """
        return self.with_credit(at_ends(jnp.asarray(self.paid), last))

    def per_state(self) -> np.ndarray | None:
        """The credit of one episode as one number for each state; None if there is no credit."""
        return None if self.credit is None else self.terms[self.credit].per_state()

    def _repr_html_(self) -> str:
        """The terms of one episode, drawn in a notebook."""
        rows = {}
        for name, term in self.terms.items():
            title = f"{name} (the credit)" if name == self.credit else name
            shape = " x ".join(map(str, np.shape(term.values)))
            drawn = f"{term.kind}, {shape}"
            if term.kind in ("line", "gate") and np.ndim(term.values) == 1:
                drawn = bars_svg(np.asarray(term.values), term.title)
            rows[title] = f"{html.escape(term.title)}<br>{drawn}"
        return facts_table(rows)

    def episode(self, column: int) -> "Explanation":
        """The explanation of one episode of a batch."""
        return jax.tree.map(lambda x: x[:, column], self)

    def cut(self, states: int) -> "Explanation":
        """The explanation of one episode, up to its end, in numpy arrays."""
        return Explanation(
            {name: term.cut(states) for name, term in self.terms.items()}, self.credit
        )
