"""An ordinary JAX actor-critic on the Chain, and the few lines that give it synthetic returns.

The agent is its own: plain dictionaries of parameters, its own loss, its own loop; flax_nnx.py and
dm_haiku.py give it networks of those libraries. Every line that synthetic returns need is marked
``# SR``. Without them the reward cannot reach the actions that
earn it, because the Chain blocks the backup between the two.

    python examples/add_to_your_agent.py
"""

import argparse
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

import synthetic_returns as sr

ENVS, UNROLL, DISCOUNT, ENTROPY, HIDDEN = 32, 20, 0.9, 0.01, 128
env = sr.make("chain")
envs = sr.VectorEnvironment(env)
optimizer = optax.adam(1e-3)


class Network(NamedTuple):
    """The parameters may be any pytree; these functions know what they mean."""

    init: Callable[[Any], Any]
    apply: Callable[[Any, Any], tuple[Any, Any, Any]]  # features, policy logits, value
    credit: Callable[[Any], sr.ContributionModel]  # SR


def init(key):
    def dense(key, n_in, n_out):
        return {"w": jax.random.normal(key, (n_in, n_out)) / n_in**0.5, "b": jnp.zeros(n_out)}

    keys = jax.random.split(key, 4)
    return {
        "features": dense(keys[0], env.observation_shape[0], HIDDEN),
        "policy": dense(keys[1], HIDDEN, env.num_actions),
        "value": dense(keys[2], HIDDEN, 1),
        "sa": sr.StateAssociativeModel(HIDDEN, key=keys[3]),  # SR
    }


def apply(params, observation):
    def layer(p, x):
        return x @ p["w"] + jnp.broadcast_to(p["b"], (*x.shape[:-1], p["b"].size))

    features = jax.nn.relu(layer(params["features"], observation))
    return features, layer(params["policy"], features), layer(params["value"], features)[..., 0]


plain = Network(init, apply, lambda params: params["sa"])


def act(network, params, carry, key):
    env_state, timestep = carry
    _, logits, _ = network.apply(params, timestep.observation)
    action = jax.random.categorical(key, logits).astype(jnp.int32)
    return envs.step(env_state, action), (timestep, action)


def unroll(network, params, carry, key):
    step = functools.partial(act, network, params)
    carry, (timesteps, actions) = jax.lax.scan(step, carry, jax.random.split(key, UNROLL))
    timesteps = jax.tree.map(lambda x, y: jnp.concatenate([x, y[None]]), timesteps, carry[1])
    return carry, timesteps, actions


def loss(params, network, timesteps, actions, memory, use_sr):
    features, logits, value = network.apply(params, timesteps.observation)
    real = ~timesteps.last[:-1]  # the step from one episode into the next is not one
    reward, sa_loss = timesteps.reward[1:], jnp.zeros(())
    if use_sr:  # SR
        model, first = network.credit(params), timesteps.first[:-1]  # SR
        association = sr.associate(model, memory, features[:-1], first, reward, valid=real)  # SR
        sa_loss, memory = association.loss, association.memory  # SR
        c = model.contribution(features[1:])  # SR
        reward = sr.augmented_reward(reward, c, alpha=0.5, beta=1.0)  # SR

    def backup(target, inputs):
        reward, discount, value, real = inputs
        target = jnp.where(real, reward + DISCOUNT * discount * target, value)
        return target, target

    steps = (reward, timesteps.discount[1:], value[:-1], real)
    _, targets = jax.lax.scan(backup, value[-1], jax.lax.stop_gradient(steps), reverse=True)
    advantage = jnp.where(real, jax.lax.stop_gradient(targets) - value[:-1], 0)
    log_pi = jax.nn.log_softmax(logits[:-1])
    chosen = jnp.take_along_axis(log_pi, actions[..., None], axis=-1)[..., 0]
    entropy = -jnp.sum(jnp.exp(log_pi) * log_pi, axis=-1)
    policy_loss = -jnp.mean(chosen * jax.lax.stop_gradient(advantage) + ENTROPY * entropy)
    total = policy_loss + 0.5 * jnp.mean(jnp.square(advantage)) + sa_loss
    return total, memory


@functools.partial(jax.jit, static_argnames=("use_sr", "network"))
def train_step(params, opt_state, carry, memory, key, use_sr, network):
    carry, timesteps, actions = unroll(network, params, carry, key)
    grad = jax.grad(loss, has_aux=True)
    grads, memory = grad(params, network, timesteps, actions, memory, use_sr)
    updates, opt_state = optimizer.update(grads, opt_state)
    ended = jnp.sum(timesteps.last[1:], dtype=jnp.float32)
    won = jnp.sum(timesteps.events["success"][1:])
    return optax.apply_updates(params, updates), opt_state, carry, memory, (won, ended)


def train(use_sr, steps, seed=0, network=plain):
    """The success rate over the last tenth of training."""
    init_key, env_key, key = jax.random.split(jax.random.key(seed), 3)
    params = network.init(init_key)
    opt_state = optimizer.init(params)
    carry = envs.reset(jax.random.split(env_key, ENVS))
    memory = sr.EpisodicMemory.empty(ENVS, env.max_episode_steps, HIDDEN)  # SR
    results = []
    for _ in range(steps // (ENVS * UNROLL)):
        key, step_key = jax.random.split(key)
        params, opt_state, carry, memory, result = train_step(
            params, opt_state, carry, memory, step_key, use_sr, network
        )
        results.append(result)
    won, ended = jnp.array(results[-len(results) // 10 :]).sum(axis=0)
    return float(won / ended)


def compare(train):
    """Trains with and without synthetic returns, from the command line."""
    parser = argparse.ArgumentParser(description="The Chain, with and without SR.")
    parser.add_argument("--steps", type=int, default=300_000, help="environment steps of each arm")
    steps = parser.parse_args().steps
    for use_sr in (True, False):
        name = "with synthetic returns" if use_sr else "without"
        print(f"{name}: {train(use_sr, steps):.3f} of the episodes succeed", flush=True)


if __name__ == "__main__":
    compare(train)
