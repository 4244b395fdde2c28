"""The evidence of the method of advances: credit compared with outcomes on new episodes."""

import equinox as eqx
import jax.numpy as jnp

from synthetic_returns.credit.advance.state import AdvanceState
from synthetic_returns.credit.advance.steps import (
    last_steps,
    prevented,
    sum_so_far,
    sum_to_come,
    terminations,
    times,
)
from synthetic_returns.credit.data.episode import EpisodeBatch

__all__ = ["examine"]


def examine(state: AdvanceState, episodes: EpisodeBatch) -> AdvanceState:
    """Compares gains with outcomes on new episodes, before training on them."""
    valid = episodes.valid
    ends = last_steps(valid)
    goes_on = valid & ~ends  # what is paid in advance is paid before the end
    prediction = state.steady(episodes.observation, episodes.action, times(episodes))
    reward = jnp.where(valid, episodes.reward, 0)
    left = reward - state.scale * prediction.b
    if "ending" not in state.without:
        left += state.scale * prevented(prediction, terminations(episodes))
    left = jnp.where(valid, left, 0)
    gains = jnp.where(goes_on[None], state.gains(prediction), 0)
    sums = jnp.swapaxes(sum_so_far(jnp.swapaxes(gains[:2], 0, 1)), 0, 1)
    to_come, left_to_come = (sum_to_come(x) - x for x in (reward, left))
    # c and u earn what the other, as far as it is trusted, leaves: else both would be paid for one
    # cause.
    paid_c, paid_u, _ = state.trust
    left_by_u, left_by_c = left_to_come - paid_u * sums[1], left_to_come - paid_c * sums[0]
    c_stake, u_stake, forecast_stake = state.usual_stake
    stakes = jnp.stack([c_stake, u_stake, forecast_stake, c_stake, u_stake])
    if "stakes" in state.without:
        stakes = jnp.zeros_like(stakes)  # every episode counts in full
    # Before the first update neither the unit of reward nor the model means anything.
    evidence = state.evidence.with_episodes(
        jnp.concatenate([gains, sums]),
        jnp.stack([left_by_u, left_by_c, to_come, left_by_u, left_by_c]),
        goes_on,
        stakes,
        counts=state.updates > 0,
    )
    state = eqx.tree_at(lambda s: s.evidence, state, evidence)

    # What an episode is paid at its end: the last reward, less what it was advanced.
    number = jnp.sum(episodes.length > 0, dtype=jnp.float32)
    advanced = jnp.sum(jnp.where(goes_on, jnp.sum(state.trusted(prediction), axis=0), 0))
    at_end = (jnp.sum(jnp.where(ends, reward, 0)) - advanced) / jnp.maximum(number, 1)
    length = jnp.sum(episodes.length).astype(jnp.float32) / jnp.maximum(number, 1)
    rate = jnp.minimum(number / jnp.maximum(state.evidence.times[0], 1), 1)
    return eqx.tree_at(
        lambda s: (s.at_end, s.length),
        state,
        (
            state.at_end + rate * (at_end - state.at_end),
            state.length + rate * (length - state.length),
        ),
    )
