"""V-trace: off-policy corrected value targets and advantages (Espeholt et al. 2018)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["VTrace", "vtrace"]


class VTrace(eqx.Module):
    """Targets for the values and weights for the policy gradient, both detached."""

    target_tm1: Float[Array, "time batch"]
    advantage_tm1: Float[Array, "time batch"]


def vtrace(
    v_tm1: Float[Array, "time batch"],
    v_t: Float[Array, "time batch"],
    r_t: Float[Array, "time batch"],
    discount_t: Float[Array, "time batch"],
    rho_tm1: Float[Array, "time batch"],
    *,
    lambda_: float = 1.0,
    clip_rho: float = 1.0,
    clip_c: float = 1.0,
    clip_pg_rho: float = 1.0,
) -> VTrace:
    """The V-trace targets.

        delta_t  = min(clip_rho, rho_tm1) * (r_t + discount_t * v_t - v_tm1)
        target_tm1 - v_tm1 = delta_t + discount_t * lambda * min(clip_c, rho_tm1) * (target_t - v_t)
        advantage_tm1 = min(clip_pg_rho, rho_tm1) * (r_t + discount_t * q_t - v_tm1)
        q_t = lambda * target_t + (1 - lambda) * v_t

    A transition with ``rho_tm1 = 0`` teaches nothing and passes nothing on: its target is the value
    itself. This is how the step from the end of one episode to the start of the next is left out.

    Args:
      v_tm1: values of the source states, t = 0 .. T - 1.
      v_t: values of the destination states, t = 1 .. T.
      r_t: rewards of arriving, t = 1 .. T.
      discount_t: discounts of arriving, t = 1 .. T.
      rho_tm1: ratio of the target to the behaviour policy at each action, t = 0 .. T - 1.
      lambda_: trace decay.
      clip_rho: bound of the ratio in the temporal difference; decides the fixed point.
      clip_c: bound of the ratio in the trace; decides the speed.
      clip_pg_rho: bound of the ratio in the policy gradient.
    """
    v_tm1, v_t, rho_tm1 = jax.lax.stop_gradient((v_tm1, v_t, rho_tm1))
    delta_t = jnp.minimum(clip_rho, rho_tm1) * (r_t + discount_t * v_t - v_tm1)
    trace_t = discount_t * lambda_ * jnp.minimum(clip_c, rho_tm1)

    def step(error_t, inputs):
        delta_t, trace_t = inputs
        error_tm1 = delta_t + trace_t * error_t
        return error_tm1, error_tm1

    _, error_tm1 = jax.lax.scan(step, jnp.zeros_like(v_t[-1]), (delta_t, trace_t), reverse=True)
    error_t = jnp.concatenate([error_tm1[1:], jnp.zeros_like(error_tm1[:1])])
    q_t = v_t + lambda_ * error_t
    advantage_tm1 = jnp.minimum(clip_pg_rho, rho_tm1) * (r_t + discount_t * q_t - v_tm1)
    return VTrace(v_tm1 + error_tm1, advantage_tm1)
