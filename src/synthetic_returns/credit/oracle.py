"""The oracle: the true contributions, as the task itself tells them."""

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
    """Pays at once what each step truly contributes to later rewards.

    No method can know that: it is the limit that others are compared with. The tasks written in JAX
    tell it, by what they owe before and after a step; nothing is learned.
    """

    name: ClassVar[str] = "oracle"
    summary: ClassVar[str] = "true contributions, told by the task"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.CONTRIBUTIONS})
    conserves: ClassVar[bool] = True

    def init(self, spec: EpisodeSpec, key: Key) -> None:
        """There is nothing to learn."""
        del spec, key

    def assign(self, state: None, carry: Any, segment: Segment) -> tuple[Assignment, Any]:
        """The contribution of each transition."""
        del state
        return Assignment(reward=_known(segment.contribution)), carry

    def explain(self, state: None, episodes: EpisodeBatch) -> Explanation:
        """The contribution of arriving in each state."""
        del state
        told = _known(episodes.contribution)
        arriving = jnp.concatenate([jnp.zeros_like(told[:1]), told])
        return Explanation({"contribution": Term(arriving, "contribution")}, "contribution")


def _known(contribution: Any) -> Array:
    if contribution is None:
        raise ValueError(
            "the steps do not tell their contributions; play them in "
            "VectorEnvironment(env, contributions=True)."
        )
    return jnp.asarray(contribution)
