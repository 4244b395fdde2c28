"""Acting: one step of the agent, and unrolls of many."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from synthetic_returns.acting.statistics import EpisodeStatistics
from synthetic_returns.envs.base import VectorEnvironment, VectorState, select_rows
from synthetic_returns.nn.networks import CoreState, Network
from synthetic_returns.types import Key, TimeStep, Trajectory, split_each

__all__ = ["ActorState", "agent_step", "stagger", "start", "unroll"]


class ActorState(eqx.Module):
    """The state of a batch of environments and their agent between two unrolls.

    Everything in it, the random keys too, has one row per environment: an environment behaves the
    same whichever others run beside it, and the batch can be spread over devices.
    """

    env: VectorState
    timestep: TimeStep
    core: CoreState
    statistics: EpisodeStatistics
    key: Shaped[Key, "batch"]


def agent_step(
    network: Network,
    timestep: TimeStep,
    core: CoreState,
    key: Shaped[Key, "batch"],
    *,
    greedy: bool,
) -> tuple[Int[Array, "batch"], Float[Array, "batch actions"], Float[Array, "batch"], CoreState]:
    """The agent's action in each environment: the one code path of acting and of evaluation.

    Beside the action, the policy, the value and the core after it.

    Args:
      network: the policy.
      timestep: what the environments show, ``[B]``.
      core: the recurrent state before this step.
      key: one for each environment, consumed here.
      greedy: take the most probable action instead of sampling.
    """
    features = network.torso(timestep.observation)
    hidden, core = network.recur(features[None], timestep.first[None], core)
    logits, value = network.heads(hidden[0])
    sample = jax.vmap(jax.random.categorical)
    action = jnp.argmax(logits, axis=-1) if greedy else sample(key, logits)
    return action.astype(jnp.int32), logits, value, core


def start(env: VectorEnvironment, network: Network, num_envs: int, key: Key) -> ActorState:
    """New environments, each at the first step of an episode."""
    env_key, action_key = jax.random.split(key)
    env_state, timestep = env.reset(jax.random.split(env_key, num_envs))
    return ActorState(
        env=env_state,
        timestep=timestep,
        core=network.initial_state(num_envs),
        statistics=EpisodeStatistics.zero(timestep),
        key=jax.random.split(action_key, num_envs),
    )


def stagger(env: VectorEnvironment, network: Network, state: ActorState) -> ActorState:
    """Advances each environment by a different part of an episode, evenly spread.

    Started together, environments whose episodes are equally long would stay in step, and every
    batch would show one phase of the task only.
    """
    num_envs, longest = len(state.key), env.env.max_episode_steps
    ahead = jnp.arange(num_envs, dtype=jnp.int32) * longest // num_envs

    def step(state: ActorState, time: Int[Array, ""]) -> tuple[ActorState, None]:
        after, _ = unroll(env, network, state, 1)
        return select_rows(time < ahead, after, state), None

    return jax.lax.scan(step, state, jnp.arange(longest, dtype=jnp.int32))[0]


def unroll(
    env: VectorEnvironment,
    network: Network,
    state: ActorState,
    length: int,
    *,
    greedy: bool = False,
) -> tuple[ActorState, Trajectory]:
    """Acts for ``length`` steps from where the last unroll ended."""

    def step(state: ActorState, _):
        key, action_key = split_each(state.key)
        action, logits, value, core = agent_step(
            network, state.timestep, state.core, action_key, greedy=greedy
        )
        env_state, timestep = env.step(state.env, action)
        statistics = state.statistics.add(timestep)
        after = ActorState(env_state, timestep, core, statistics, key)
        return after, (state.timestep, action, logits, value)

    after, (timesteps, action, logits, value) = jax.lax.scan(step, state, length=length)
    timesteps = jax.tree.map(
        lambda steps, last: jnp.concatenate([steps, last[None]]), timesteps, after.timestep
    )
    return after, Trajectory(timesteps, action, logits, value, state.core)
