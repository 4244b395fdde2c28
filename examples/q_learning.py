"""Q-learning from replayed sequences on the Chain, and the lines that give it synthetic returns.

    python examples/q_learning.py

The ingredients of R2D2 and DQN but for the recurrent core: sequences kept in a replay, double
Q-learning with a slowly changing target network, returns over several steps without correction,
epsilon-greedy actors. Synthetic returns need an agent that learns from rewards over time, no policy
gradient. Lines that they need are marked ``# SR``. Replayed rewards are augmented when they are
replayed, with what is known about contributions by then. Without them Q is about 0 everywhere, and
whether the greedy action leads to the trigger is a matter of chance.
"""

import functools

import jax
import jax.numpy as jnp
import optax
from add_to_your_agent import compare

import synthetic_returns as sr

ENVS, UNROLL, DISCOUNT, DECAY, HIDDEN = 32, 20, 0.9, 0.8, 128
SLOTS, REPLAYED, UPDATES, TARGET_RATE = 200, 4, 4, 0.05
ALPHA, BETA = 0.5, 1.0
env = sr.make("chain")
envs = sr.VectorEnvironment(env)
optimizer = optax.adam(1e-3)


def init(key):
    def dense(key, n_in, n_out):
        return {"w": jax.random.normal(key, (n_in, n_out)) / n_in**0.5, "b": jnp.zeros(n_out)}

    keys = jax.random.split(key, 3)
    return {
        "features": dense(keys[0], env.observation_shape[0], HIDDEN),
        "q": dense(keys[1], HIDDEN, env.num_actions),
        "sa": sr.StateAssociativeModel(HIDDEN, key=keys[2]),  # SR
    }


def apply(params, observation):
    def layer(p, x):
        return x @ p["w"] + jnp.broadcast_to(p["b"], (*x.shape[:-1], p["b"].size))

    features = jax.nn.relu(layer(params["features"], observation))
    return features, layer(params["q"], features)


def unroll(params, carry, key, epsilon):
    def act(carry, key):
        env_state, timestep = carry
        random_key, explore_key = jax.random.split(key)
        _, q = apply(params, timestep.observation)
        random = jax.random.randint(random_key, (ENVS,), 0, env.num_actions)
        explore = jax.random.uniform(explore_key, (ENVS,)) < epsilon
        action = jnp.where(explore, random, jnp.argmax(q, axis=-1)).astype(jnp.int32)
        return envs.step(env_state, action), (timestep, action)

    carry, (timesteps, actions) = jax.lax.scan(act, carry, jax.random.split(key, UNROLL))
    timesteps = jax.tree.map(lambda x, y: jnp.concatenate([x, y[None]]), timesteps, carry[1])
    return carry, (timesteps, actions)


def draw(replay, slots):
    """Sequences of the replay, side by side."""
    return jax.tree.map(lambda kept: jnp.concatenate(kept[slots], axis=1), replay)


def sa_loss(params, timesteps, memory):
    features, _ = apply(params, timesteps.observation)
    real, first = ~timesteps.last[:-1], timesteps.first[:-1]
    association = sr.associate(  # SR
        params["sa"], memory, features[:-1], first, timesteps.reward[1:], valid=real
    )
    return association.loss, association.memory  # SR


def q_loss(params, target_params, sequence, use_sr):
    timesteps, actions = sequence
    features, q = apply(params, timesteps.observation)
    _, target_q = apply(target_params, timesteps.observation)
    greedy = jnp.argmax(q, axis=-1)[..., None]
    value = jnp.take_along_axis(target_q, greedy, axis=-1)[..., 0]
    real, reward = ~timesteps.last[:-1], timesteps.reward[1:]
    if use_sr:
        c = params["sa"].contribution(features[1:])  # SR
        reward = sr.augmented_reward(reward, c, alpha=ALPHA, beta=BETA)  # SR

    def backup(target, inputs):
        reward, discount, value_t, value_tm1, real = inputs
        target = reward + DISCOUNT * discount * ((1 - DECAY) * value_t + DECAY * target)
        target = jnp.where(real, target, value_tm1)
        return target, target

    steps = (reward, timesteps.discount[1:], value[1:], value[:-1], real)
    _, targets = jax.lax.scan(backup, value[-1], jax.lax.stop_gradient(steps), reverse=True)
    chosen = jnp.take_along_axis(q[:-1], actions[..., None], axis=-1)[..., 0]
    return jnp.mean(jnp.where(real, jnp.square(targets - chosen), 0))


@functools.partial(jax.jit, static_argnames="use_sr", donate_argnames="replay")
def train_step(
    params, target_params, opt_state, carry, memory, replay, count, key, epsilon, use_sr
):
    unroll_key, replay_key = jax.random.split(key)
    carry, sequence = unroll(params, carry, unroll_key, epsilon)
    replay = jax.tree.map(lambda kept, x: kept.at[count % SLOTS].set(x), replay, sequence)
    slots = jax.random.randint(replay_key, (UPDATES, REPLAYED), 0, jnp.minimum(count + 1, SLOTS))
    for update in range(UPDATES):
        drawn = draw(replay, slots[update])
        grads = jax.grad(q_loss)(params, target_params, drawn, use_sr)
        if use_sr and update == 0:
            sa_grads, memory = jax.grad(sa_loss, has_aux=True)(params, sequence[0], memory)  # SR
            grads = jax.tree.map(jnp.add, grads, sa_grads)  # SR
        updates, opt_state = optimizer.update(grads, opt_state)
        params = optax.apply_updates(params, updates)
        target_params = optax.incremental_update(params, target_params, TARGET_RATE)
    ended = jnp.sum(sequence[0].last[1:], dtype=jnp.float32)
    won = jnp.sum(sequence[0].events["success"][1:])
    return params, target_params, opt_state, carry, memory, replay, (won, ended)


def train(use_sr, steps, seed=0):
    """The success rate over the last tenth of training."""
    init_key, env_key, key = jax.random.split(jax.random.key(seed), 3)
    params = init(init_key)
    target_params, opt_state = params, optimizer.init(params)
    carry = envs.reset(jax.random.split(env_key, ENVS))
    memory = sr.EpisodicMemory.empty(ENVS, env.max_episode_steps, HIDDEN)  # SR
    _, sequence = jax.eval_shape(unroll, params, carry, key, 1.0)
    replay = jax.tree.map(lambda x: jnp.zeros((SLOTS, *x.shape), x.dtype), sequence)
    results = []
    total = steps // (ENVS * UNROLL)
    for count in range(total):
        key, step_key = jax.random.split(key)
        epsilon = max(0.02, 1 - count / (0.7 * total))  # from random to nearly greedy
        params, target_params, opt_state, carry, memory, replay, result = train_step(
            params,
            target_params,
            opt_state,
            carry,
            memory,
            replay,
            count,
            step_key,
            epsilon,
            use_sr,
        )
        results.append(result)
    won, ended = jnp.array(results[-len(results) // 10 :]).sum(axis=0)
    return float(won / ended)


if __name__ == "__main__":
    compare(train)
