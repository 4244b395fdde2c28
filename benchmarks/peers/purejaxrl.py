"""Environment steps per second, learning included, of PPO in the style of purejaxrl.

Written after the pattern of that repository, which is not a package: a scan of iterations, each a
scan of steps and an update, all in one compiled call, with one key that is split as it goes.
"""

import argparse
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from catch import NUM_ACTIONS
from catch_gymnax import CatchGymnax
from flax import linen as nn
from report import Stopwatch, print_record

UNITS = 128
DISCOUNT, TRACE_DECAY, CLIP, VALUE_COST, ENTROPY_COST = 0.9, 0.95, 0.2, 0.5, 0.01
NAMES = {"mlp": "purejaxrl_mlp", "gru": "purejaxrl"}


class Transition(NamedTuple):
    first: jax.Array
    observation: jax.Array
    action: jax.Array
    value: jax.Array
    log_prob: jax.Array
    reward: jax.Array
    done: jax.Array


class Recurrence(nn.Module):
    """A GRU over time that forgets where an episode begins."""

    def setup(self):
        self.cell = nn.GRUCell(UNITS)

    def __call__(self, carry, inputs):
        def step(cell, carry, inputs):
            first, x = inputs
            return cell(jnp.where(first[:, None], 0.0, carry), x)

        scan = nn.scan(step, variable_broadcast="params", split_rngs={"params": False})
        return scan(self.cell, carry, inputs)


class Network(nn.Module):
    """A layer, a GRU or not, a layer, logits and value; ``[T, B]`` in and out."""

    recurrent: bool

    @nn.compact
    def __call__(self, carry, first, observation):
        x = nn.relu(nn.Dense(UNITS)(observation.reshape(*observation.shape[:2], -1)))
        if self.recurrent:
            carry, x = Recurrence()(carry, (first, x))
        x = nn.relu(nn.Dense(UNITS)(x))
        return carry, nn.Dense(NUM_ACTIONS)(x), nn.Dense(1)(x)[..., 0]


def log_prob_of(logits: jax.Array, action: jax.Array) -> jax.Array:
    return jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], -1)[..., 0]


def make_training(network: Network, envs: int, unroll: int, epochs: int, updates: int):
    """The state before training, and a compiled function that makes many updates."""
    env = CatchGymnax()
    step_envs = jax.vmap(env.step)
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-3, eps=1e-5))

    def start(key: jax.Array) -> Any:
        key, env_key, network_key = jax.random.split(key, 3)
        observation, env_state = jax.vmap(env.reset)(jax.random.split(env_key, envs))
        carry, first = jnp.zeros((envs, UNITS)), jnp.ones(envs, bool)
        params = network.init(network_key, carry, first[None], observation[None])
        return params, optimizer.init(params), env_state, observation, first, carry, key

    def act(params: Any, runner: Any, _: None):
        env_state, observation, first, carry, key = runner
        key, action_key, step_key = jax.random.split(key, 3)
        carry, logits, value = network.apply(params, carry, first[None], observation[None])
        action = jax.random.categorical(action_key, logits[0])
        keys = jax.random.split(step_key, envs)
        after, env_state, reward, done, _ = step_envs(keys, env_state, action)
        log_prob = log_prob_of(logits[0], action)
        step = Transition(first, observation, action, value[0], log_prob, reward, done)
        return (env_state, after, done, carry, key), step

    def advantages(steps: Transition, last_value: jax.Array) -> jax.Array:
        def back(later: Any, step: Transition):
            advantage, next_value = later
            goes_on = DISCOUNT * (1 - step.done)
            error = step.reward + goes_on * next_value - step.value
            advantage = error + goes_on * TRACE_DECAY * advantage
            return (advantage, step.value), advantage

        nothing = jnp.zeros_like(last_value)
        return jax.lax.scan(back, (nothing, last_value), steps, reverse=True)[1]

    def loss(params: Any, carry: jax.Array, steps: Transition, advantage: jax.Array):
        _, logits, value = network.apply(params, carry, steps.first, steps.observation)
        target = advantage + steps.value
        near = steps.value + jnp.clip(value - steps.value, -CLIP, CLIP)
        worse = jnp.maximum(jnp.square(value - target), jnp.square(near - target))
        ratio = jnp.exp(log_prob_of(logits, steps.action) - steps.log_prob)
        scaled = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        gain = jnp.minimum(ratio * scaled, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * scaled)
        log_pi = jax.nn.log_softmax(logits)
        entropy = -jnp.sum(jnp.exp(log_pi) * log_pi, -1).mean()
        return -gain.mean() + VALUE_COST * 0.5 * worse.mean() - ENTROPY_COST * entropy

    def iteration(state: Any, _: None):
        params, optimizer_state, *runner = state
        carry = runner[3]
        runner, steps = jax.lax.scan(
            lambda runner, x: act(params, runner, x), tuple(runner), length=unroll
        )
        _, observation, first, after, _ = runner
        value = network.apply(params, after, first[None], observation[None])[2][0]
        advantage = advantages(steps, value)
        for _ in range(epochs):
            grads = jax.grad(loss)(params, carry, steps, advantage)
            changes, optimizer_state = optimizer.update(grads, optimizer_state, params)
            params = optax.apply_updates(params, changes)
        return (params, optimizer_state, *runner), jnp.mean(steps.reward)

    def train(state: Any):
        return jax.lax.scan(iteration, state, length=updates)

    return start(jax.random.key(0)), jax.jit(train, donate_argnums=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--warmup", type=float, default=5)
    parser.add_argument("--envs", type=int, default=32)
    parser.add_argument("--unroll", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--networks", nargs="*", choices=NAMES, default=list(NAMES))
    parser.add_argument("--updates", type=int, default=50, help="in one compiled call")
    args = parser.parse_args()

    for name in args.networks:
        state, train = make_training(
            Network(recurrent=name == "gru"), args.envs, args.unroll, args.epochs, args.updates
        )
        state, _ = jax.block_until_ready(train(state))  # compiles
        watch, done, caught = Stopwatch(args.warmup, args.seconds), 0, None
        while not watch.read(done):
            state, caught = jax.block_until_ready(train(state))
            done += args.updates * args.envs * args.unroll
        if caught is not None:
            print(f"{name}: {7 * float(caught.mean()):.2f} of the balls are caught")
        print_record(f"agent_steps_per_s/{NAMES[name]}", watch.steps_per_s)


if __name__ == "__main__":
    main()
