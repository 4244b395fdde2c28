"""A driver for longer episodes that goes on from one for shorter ones."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from synthetic_returns.credit.driver import CreditDriver

__all__ = ["continued"]


def continued(old: CreditDriver[Any], new: CreditDriver[Any]) -> CreditDriver[Any]:
    """The new driver with all that the old one has learned.

    What a method keeps for each time step is kept for the first of them; for later ones nothing is
    known. A method whose model itself depends on the length of episodes is refused.

    Args:
      old: learned from shorter episodes.
      new: the same method, made for longer ones.
    """
    arrays, rest = eqx.partition(new.state, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    learned = jax.tree.leaves(eqx.filter(old.state, eqx.is_array))
    steps = (old.spec.max_steps, new.spec.max_steps)
    for index, (leaf, before) in enumerate(zip(leaves, learned, strict=True)):
        sizes = zip(before.shape, leaf.shape, strict=True)
        if any(pair != steps for pair in sizes if pair[0] != pair[1]):
            raise ValueError(
                f"an episode is longer than {old.max_episode_steps} steps, which the method "
                f"{old.method.name!r} was made for: pass max_episode_steps="
                f"{new.max_episode_steps}, or whatever the longest episode is."
            )
        first = tuple(slice(0, size) for size in before.shape)
        leaves[index] = leaf.at[first].set(before)
    new.state = eqx.combine(jax.tree.unflatten(structure, leaves), rest)
    new.updates, new.updates_owed, new.seed = old.updates, old.updates_owed, old.seed
    rng = np.random.default_rng([old.seed, int(old.buffer.seen)])
    for episode in old.buffer.episodes():
        new.buffer.add(episode, rng)
    return new
