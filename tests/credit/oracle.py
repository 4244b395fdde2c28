"""State-associative learning as the paper writes it: plain loops, one memory list per episode."""

import equinox as eqx
import jax
import jax.numpy as jnp

# One state at a time, so that a few programs do for memories of every size.
contribution = eqx.filter_jit(lambda model, state: model.contribution(state))
gate = eqx.filter_jit(lambda model, state: model.gate(state))
baseline = eqx.filter_jit(lambda model, state: model.baseline(state))


def oracle(model, memory, features, first, reward, current, valid, capacity, two_stage):
    """The loss, the predictions and the memories after an unroll.

    Args:
      model: ``c``, ``g`` and ``b``.
      memory: a list of stored states per batch row.
      features: ``[T, B, D]``.
      first: ``[T, B]``.
      reward: ``[T, B]``.
      current: ``[T, B, D']``.
      valid: ``[T, B]``.
      capacity: how many states a memory keeps.
      two_stage: which loss.
    """
    time, batch = reward.shape
    losses, r_hat = [], {}
    memory = [list(row) for row in memory]
    for row in range(batch):
        for t in range(time):
            if first[t, row]:
                memory[row] = []
            s_t = current[t, row]
            r_t = reward[t, row]
            b = baseline(model, s_t)
            g = gate(model, s_t)
            c_sum = sum((contribution(model, state) for state in memory[row]), 0.0)
            r_hat[t, row] = g * c_sum + b
            if valid[t, row]:
                if two_stage:
                    losses.append(
                        (r_t - b) ** 2 + (r_t - jax.lax.stop_gradient(b) - g * c_sum) ** 2
                    )
                else:
                    losses.append((r_t - g * c_sum - b) ** 2)
            memory[row] = [*memory[row], jax.lax.stop_gradient(features[t, row])][-capacity:]
    loss = sum(losses) / max(len(losses), 1)
    r_hat = jnp.stack([jnp.stack([r_hat[t, b] for b in range(batch)]) for t in range(time)])
    return loss, (r_hat, memory)
