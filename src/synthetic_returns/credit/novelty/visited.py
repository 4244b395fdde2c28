"""How new a state is within its episode: its distance from the nearest states so far."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

__all__ = ["Visited", "episodic_novelty", "visit"]

EPSILON = 1e-3  # of the kernel: how similar states of the usual distance are
CLUSTER = 8e-3  # of the usual distance; nearer states are the same
SOFTEN = 1e-3  # keeps the novelty of a state without any similar one finite


class Visited(eqx.Module):
    """The states of the running episodes, as they are compared.

    Attributes:
      embedding: a ring of the newest ones.
      count: how many there were.
    """

    embedding: Float[Array, "batch capacity size"]
    count: Int[Array, "batch"]

    @classmethod
    def none(cls, batch: int, capacity: int, size: int) -> "Visited":
        """Before the first step."""
        return cls(jnp.zeros((batch, capacity, size)), jnp.zeros(batch, jnp.int32))

    def add(self, embedding: Float[Array, "batch size"], first: Bool[Array, "batch"]) -> "Visited":
        """With one more state of each, or with this one alone where an episode starts."""
        count = jnp.where(first, 0, self.count)
        rows = jnp.arange(len(count), dtype=jnp.int32)
        slot = count % self.embedding.shape[1]
        return Visited(self.embedding.at[rows, slot].set(embedding), count + 1)

    def nearest(
        self, embedding: Float[Array, "batch size"], neighbours: int
    ) -> Float[Array, "batch neighbours"]:
        """The squared distances from the nearest states; infinite where there are too few."""
        square = jnp.sum(jnp.square(self.embedding - embedding[:, None]), axis=-1)
        there = jnp.arange(square.shape[1], dtype=jnp.int32)[None] < self.count[:, None]
        return -jax.lax.top_k(-jnp.where(there, square, jnp.inf), neighbours)[0]


def visit(
    visited: Visited,
    embedding: Float[Array, "states batch size"],
    first: Bool[Array, "states batch"],
    neighbours: int,
) -> tuple[Float[Array, "time batch neighbours"], Visited]:
    """For each state arrived in, the distances from the nearest states before it.

    Args:
      visited: the states before the first one.
      embedding: the T + 1 states of a segment.
      first: whether an episode starts there.
      neighbours: how many.

    Returns:
      The squared distances, and the states before the last one.
    """

    def step(visited: Visited, inputs: tuple[Array, Array, Array]) -> tuple[Visited, Array]:
        left, first_tm1, arrived = inputs
        visited = visited.add(left, first_tm1)
        return visited, visited.nearest(arrived, neighbours)

    visited, square = jax.lax.scan(step, visited, (embedding[:-1], first[:-1], embedding[1:]))
    return square, visited


def episodic_novelty(
    square: Float[Array, "*batch neighbours"], usual: Float[Array, ""]
) -> Float[Array, "*batch"]:
    """``1 / (sqrt(sum of K) + c)``, in units of a state with no near one.

    ``K = epsilon / (max(d^2 / usual - xi, 0) + epsilon)`` is how similar a neighbour is. Neighbours
    that are not there yet count as ones at the usual distance.

    Args:
      square: the squared distances d^2 from the nearest states.
      usual: their running mean.
    """
    apart = jnp.where(jnp.isfinite(square), square / jnp.maximum(usual, 1e-8), 1)
    similar = EPSILON / (jnp.maximum(apart - CLUSTER, 0) + EPSILON)
    most = jnp.sqrt(square.shape[-1] * EPSILON)
    return most / (jnp.sqrt(jnp.sum(similar, axis=-1)) + SOFTEN)
