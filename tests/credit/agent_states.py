"""States of an agent, for methods that are trained with it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.credit.auxiliary import AgentStates

FEATURES, HIDDEN = 3, 5


def make_states(time: int, batch: int, seed: int = 0, scale: float = 1.0) -> AgentStates:
    """Random states of episodes of four steps each, whose rows begin at different points."""
    rng = np.random.default_rng(seed)
    at = (np.arange(time + 1)[:, None] + np.arange(batch)[None]) % 5
    return AgentStates(
        features=jnp.asarray(rng.normal(size=(time + 1, batch, FEATURES)), jnp.float32),
        hidden=jnp.asarray(rng.normal(size=(time + 1, batch, HIDDEN)), jnp.float32),
        first=jnp.asarray(at == 0),
        last=jnp.asarray(at == 4),
        reward=jnp.asarray(scale * rng.normal(size=(time, batch)), jnp.float32),
    )


def part_of(states: AgentStates, start: int, end: int) -> AgentStates:
    """The transitions from ``start`` to ``end``."""
    cut = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[start : end + 1]), states)
    return eqx.tree_at(lambda s: s.reward, cut, jnp.asarray(np.asarray(states.reward)[start:end]))
