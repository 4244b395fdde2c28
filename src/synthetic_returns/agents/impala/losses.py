"""The losses of the actor-critic, averaged over the transitions that are real."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from synthetic_returns.utils.averages import masked_mean

__all__ = [
    "action_prior_loss",
    "all_actions_loss",
    "entropy_loss",
    "log_prob",
    "policy_gradient_loss",
    "value_loss",
]


def log_prob(
    logits: Float[Array, "time batch actions"], action: Int[Array, "time batch"]
) -> Float[Array, "time batch"]:
    """Log probability of the actions taken."""
    log_pi = jax.nn.log_softmax(logits)
    return jnp.take_along_axis(log_pi, action[..., None], axis=-1)[..., 0]


def policy_gradient_loss(
    log_pi_tm1: Float[Array, "time batch"],
    advantage_tm1: Float[Array, "time batch"],
    valid_tm1: Bool[Array, "time batch"],
) -> Float[Array, ""]:
    """Raises the probability of actions with a positive advantage."""
    return -masked_mean(log_pi_tm1 * jax.lax.stop_gradient(advantage_tm1), valid_tm1)


def all_actions_loss(
    logits_tm1: Float[Array, "time batch actions"],
    advantage_tm1: Float[Array, "time batch actions"],
    valid_tm1: Bool[Array, "time batch"],
) -> Float[Array, ""]:
    """Raises the probability of all actions with a positive advantage, taken or not."""
    pi = jax.nn.softmax(logits_tm1)
    gain = jnp.sum(pi * jax.lax.stop_gradient(advantage_tm1), axis=-1)
    return -masked_mean(gain, valid_tm1)


def value_loss(
    v_tm1: Float[Array, "time batch"],
    target_tm1: Float[Array, "time batch"],
    valid_tm1: Bool[Array, "time batch"],
) -> Float[Array, ""]:
    """Half of the squared error of the values, as in IMPALA."""
    error = jax.lax.stop_gradient(target_tm1) - v_tm1
    return 0.5 * masked_mean(jnp.square(error), valid_tm1)


def entropy_loss(
    logits_tm1: Float[Array, "time batch actions"], valid_tm1: Bool[Array, "time batch"]
) -> Float[Array, ""]:
    """The negative entropy of the policy."""
    log_pi = jax.nn.log_softmax(logits_tm1)
    return masked_mean(jnp.sum(jnp.exp(log_pi) * log_pi, axis=-1), valid_tm1)


def action_prior_loss(
    logits_tm1: Float[Array, "time batch actions"],
    log_prior: Float[Array, "actions"],
    valid_tm1: Bool[Array, "time batch"],
) -> Float[Array, ""]:
    """The cross-entropy of policy and prior; with the entropy loss, their KL divergence."""
    pi = jax.nn.softmax(logits_tm1)
    return -masked_mean(jnp.einsum("tba,a->tb", pi, log_prior), valid_tm1)
