"""The oracle: the true contributions, provided by the task itself."""

import dataclasses
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array

from synthetic_returns.credit.data.episode import EpisodeBatch, Segment
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.method import Assigner, Assignment, Need
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.types import Key

__all__ = ["Oracle"]


@dataclasses.dataclass(frozen=True)
class Oracle(Assigner):
    """Pays each step at once what it truly contributes to later rewards.

    No method can know this in general, so the oracle is the upper bound for all methods. Tasks
    written in JAX provide the contributions: the change, in each step, of what later steps will pay
    for the past (``owed``). The oracle learns nothing.
    """

    name: ClassVar[str] = "oracle"
    summary: ClassVar[str] = "true contributions, told by the task"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.CONTRIBUTIONS})
    conserves: ClassVar[bool] = True

    def init(self, spec: EpisodeSpec, key: Key) -> None:
        """There is nothing to learn."""
        del spec, key

    def assign(self, state: None, carry: Any, segment: Segment) -> tuple[Assignment, Any]:
        """The contribution of each transition: the change of what later steps will pay."""
        del state
        return Assignment(change=_known(segment.contribution)), carry

    def explain(self, state: None, episodes: EpisodeBatch) -> Explanation:
        """The contribution of arriving in each state."""
        del state
        told = _known(episodes.contribution)
        arriving = jnp.concatenate([jnp.zeros_like(told[:1]), told])
        return Explanation({"contribution": Term(arriving, "contribution")}, "contribution")


def _known(contribution: Any) -> Array:
    if contribution is None:
        raise ValueError(
            "the steps have no contributions; play them in "
            "VectorEnvironment(env, contributions=True)."
        )
    return jnp.asarray(contribution)
