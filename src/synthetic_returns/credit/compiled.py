"""The functions of a credit method, compiled once for all drivers that use it."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from synthetic_returns.credit.data.episode import EpisodeBatch, Segment
from synthetic_returns.credit.explanation import Explanation
from synthetic_returns.credit.method import Assigner, CreditMethod
from synthetic_returns.credit.standardiser import with_statistics_of
from synthetic_returns.credit.view import differences

__all__ = ["Functions", "compiled"]


class Functions(NamedTuple):
    """The functions of a method, compiled.

    They take and give the arrays of a state as a list, and batches as dicts: to take states and
    batches apart in Python at every step would cost more than many a step itself.
    """

    state: Callable[..., Any]
    learn: Callable[..., Any]
    examine: Callable[..., Any]
    assign: Callable[..., Any]
    assign_at: Callable[..., Any]
    explain: Callable[..., Any]
    copy: Callable[..., Any]


@functools.lru_cache(maxsize=64)
def compiled(
    method: Assigner,
    changes: bool,
    stride: int,
    structure: Any,
    rest_leaves: tuple[Any, ...],
    rest_structure: Any,
) -> Functions:
    """The functions of a method, compiled for states of one structure.

    Args:
      method: the method.
      changes: whether it sees differences of the frames that it is given.
      stride: how many steps there are to each state that it learns from.
      structure: of the arrays of its states.
      rest_leaves: what is no array in a state.
      rest_structure: of that.
    """
    rest = jax.tree.unflatten(rest_structure, rest_leaves)

    def state_of(arrays: list[Array]) -> Any:
        return eqx.combine(jax.tree.unflatten(structure, arrays), rest)

    def arrays_of(state: Any) -> list[Array]:
        return jax.tree.leaves(eqx.filter(state, eqx.is_array))

    def seen(fields: dict[str, Any]) -> dict[str, Any]:
        if not changes:
            return fields
        return fields | {"observation": differences(fields["observation"])}

    def learn(arrays: list[Array], batch: dict[str, Any], draw: Array) -> tuple[Any, Any]:
        assert isinstance(method, CreditMethod)
        key = jax.random.fold_in(jax.random.key(draw[0]), draw[1])
        state, metrics = method.learn(state_of(arrays), EpisodeBatch(**seen(batch)), key)
        return arrays_of(state), metrics

    def examine(arrays: list[Array], batch: dict[str, Any]) -> list[Array]:
        assert isinstance(method, CreditMethod)
        episodes = EpisodeBatch(**seen(batch))
        state = with_statistics_of(episodes, state_of(arrays))
        return arrays_of(method.examine(state, episodes))

    def assign(arrays: list[Array], carry: Any, fields: dict[str, Any]) -> tuple[Any, Any]:
        segment = Segment(**seen(fields))
        credit, carry = method.pay(state_of(arrays), carry, segment, stride)
        return (credit.reward, credit.advantage), carry

    def assign_at(arrays: list[Array], time: Array, fields: dict[str, Any]) -> Array | None:
        carry = method.resume(state_of(arrays), time), jnp.zeros(len(time))
        (reward, _), _ = assign(arrays, carry, fields)
        return reward

    def explain(arrays: list[Array], batch: dict[str, Any]) -> Explanation:
        return method.explain(state_of(arrays), EpisodeBatch(**seen(batch)))

    def copy(arrays: list[Array]) -> list[Array]:
        return [jnp.copy(x) for x in arrays]

    return Functions(
        state_of,
        jax.jit(learn, donate_argnums=0),
        jax.jit(examine, donate_argnums=0),
        jax.jit(assign),
        jax.jit(assign_at),
        jax.jit(explain),
        jax.jit(copy),
    )
