"""State-associative learning on an unroll: predict each reward from the states before it."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from synthetic_returns.credit.paper.filled import filled_contributions
from synthetic_returns.credit.paper.memory import (
    EpisodicMemory,
    episode_index,
    memory_sum,
    remember,
)
from synthetic_returns.credit.paper.sa_model import ContributionModel
from synthetic_returns.utils.averages import explained_variance, masked_mean, masked_variance
from synthetic_returns.utils.checks import check_finite, check_shape

__all__ = ["Association", "associate"]


class Association(eqx.Module):
    """The result of one pass over an unroll.

    Attributes:
      loss: the mean squared error of the prediction, to be minimised.
      c_t: the synthetic return of each state, detached.
      g_t: the gate.
      b_t: the baseline.
      c_sum_tm1: the sum of ``c`` over the states before.
      r_hat: the predicted reward, ``g_t * c_sum_tm1 + b_t``.
      memory: the memory for the next unroll.
      metrics: diagnostics, by name.
    """

    loss: Float[Array, ""]
    c_t: Float[Array, "time batch"]
    g_t: Float[Array, "time batch"]
    b_t: Float[Array, "time batch"]
    c_sum_tm1: Float[Array, "time batch"]
    r_hat: Float[Array, "time batch"]
    memory: EpisodicMemory
    metrics: dict[str, Float[Array, ""]]


def associate(
    model: ContributionModel,
    memory: EpisodicMemory,
    features: Float[Array, "time batch past"],
    first: Bool[Array, "time batch"],
    reward: Float[Array, "time batch"],
    *,
    current: Float[Array, "time batch current"] | None = None,
    valid: Bool[Array, "time batch"] | None = None,
    two_stage: bool = False,
    check: bool = True,
) -> Association:
    """Eq. (basic_arch) over an unroll, in O(capacity + T) evaluations of ``c``.

    The prediction of the reward is ``r_hat_t = g(s_t) * sum_{k<t} c(s_k) + b(s_t)``. Gradients
    reach the features through ``g`` and ``b`` only: what ``c`` sees is detached, whether it is
    stored or part of this unroll, so that cutting an episode into unrolls changes nothing.

    Args:
      model: ``c``, ``g`` and ``b``.
      memory: the states of the running episodes before this unroll.
      features: the states ``s_t`` of the unroll, as ``c`` sees them and the memory keeps them.
      first: where an episode starts.
      reward: the reward of the step that leaves ``s_t``.
      current: the states as ``g`` and ``b`` see them; by default the same as ``features``.
      valid: where ``s_t`` has a successor in its episode, so that there is a reward; by default
        everywhere. A terminal state has none.
      two_stage: fit ``b`` to the reward and the memory to what ``b`` leaves (the Skiing section),
        instead of both at once.
      check: refuse rewards that are not finite. Inside jit this costs a call to the host in every
        pass; a trainer that watches its loss can do without.
    """
    current = features if current is None else current
    valid = jnp.ones_like(first) if valid is None else valid
    _check_inputs(memory, features, first, reward, current, valid)
    if check:
        reward = check_finite("reward", reward)
    # The past of an episode that was not seen from its beginning is not known: no error counts.
    whole = memory.whole[None] | (jnp.cumsum(first, axis=0, dtype=jnp.int32) > 0)

    past = jax.lax.stop_gradient(features)
    c_t = model.contribution(past)
    c_memory = filled_contributions(model, memory)
    g_t = model.gate(current)
    b_t = model.baseline(current)
    c_sum_tm1 = memory_sum(c_memory, c_t, first, memory.steps)
    r_hat = g_t * c_sum_tm1 + b_t

    def mean_square(error: Float[Array, "time batch"]) -> Float[Array, ""]:
        return masked_mean(jnp.where(whole, jnp.square(error), 0), valid)

    if two_stage:
        residual = reward - jax.lax.stop_gradient(b_t) - g_t * c_sum_tm1
        loss = mean_square(reward - b_t) + mean_square(residual)
    else:
        loss = mean_square(reward - r_hat)

    seen = episode_index(first, memory.steps)
    metrics = {
        "gate_mean": masked_mean(g_t, valid),
        "gate_max": jnp.max(jnp.where(valid, g_t, 0)),
        "contribution_mean": masked_mean(c_t, valid),
        "contribution_std": jnp.sqrt(masked_variance(c_t, valid)),
        "explained_variance": explained_variance(reward - b_t, g_t * c_sum_tm1, valid),
        "memory_fill": masked_mean(jnp.minimum(seen, memory.capacity) / memory.capacity, valid),
        "memory_overflow": masked_mean((seen > memory.capacity).astype(jnp.float32), valid),
    }
    return Association(
        loss=loss,
        c_t=jax.lax.stop_gradient(c_t),
        g_t=g_t,
        b_t=b_t,
        c_sum_tm1=c_sum_tm1,
        r_hat=r_hat,
        memory=remember(memory, past, first),
        metrics=jax.lax.stop_gradient(metrics),
    )


def _check_inputs(memory, features, first, reward, current, valid):
    batch, _, size = memory.states.shape
    time = features.shape[0] if features.ndim else None
    check_shape("features", features, (None, batch, size), "[T, B, D] (B and D of the memory)")
    check_shape("first", first, (time, batch), "[T, B]")
    check_shape("reward", reward, (time, batch), "[T, B]")
    check_shape("current", current, (time, batch, None), "[T, B, D']")
    check_shape("valid", valid, (time, batch), "[T, B]")
