"""Environment steps per second under a random policy, in JAX and through Gymnasium."""

import time
from collections.abc import Callable, Iterable

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.bench.record import Record
from synthetic_returns.envs.base import VectorEnvironment
from synthetic_returns.envs.registry import TASKS, find_task, register_with_gymnasium

__all__ = ["run"]


def run(
    tasks: Iterable[str] = tuple(TASKS), *, num_envs: int = 64, steps: int = 1000, repeats: int = 5
) -> list[Record]:
    """Measures every task.

    Args:
      tasks: names of the tasks.
      num_envs: environments in a batch.
      steps: steps of the batch in one measurement.
      repeats: measurements, of which the fastest counts: the others shared the machine.

    Returns:
      ``env_steps_per_s/<task>``, the batch inside a jitted scan, and ``gym_steps_per_s/<task>``,
      the native vector environment stepped from Python.
    """
    records = []
    for name in tasks:
        for prefix, prepare in (("env", _prepare_jax), ("gym", _prepare_gymnasium)):
            work = prepare(name, num_envs, steps)
            work()  # compiles, and takes the episodes out of step with each other
            rate = num_envs * steps / min(_seconds(work) for _ in range(repeats))
            records.append(Record(f"{prefix}_steps_per_s/{name}", rate, "steps/s"))
    return records


def _prepare_jax(name: str, num_envs: int, steps: int) -> Callable[[], None]:
    env = find_task(name).make()
    batch = VectorEnvironment(env)

    @jax.jit
    def unroll(state, key):
        next_key, actions_key = jax.random.split(key)
        actions = jax.random.randint(actions_key, (steps, num_envs), 0, env.num_actions)

        def step(carry, action):
            state, seen = carry
            state, timestep = batch.step(state, action)
            # Everything a step returns has to be used, or the compiler leaves it out.
            used = (timestep.observation, timestep.reward, timestep.discount, timestep.events)
            return (state, jax.tree.map(jnp.add, seen, used)), None

        shown = jax.eval_shape(batch.step, state, actions[0])[1]
        nothing = jax.tree.map(
            lambda x: jnp.zeros(x.shape, x.dtype),
            (shown.observation, shown.reward, shown.discount, shown.events),
        )
        return jax.lax.scan(step, (state, nothing), actions)[0], next_key

    state, _ = jax.jit(batch.reset)(jax.random.split(jax.random.key(0), num_envs))
    carry = [state, jax.random.key(1)]

    def run() -> None:
        (carry[0], _), carry[1] = jax.block_until_ready(unroll(*carry))

    return run


def _prepare_gymnasium(name: str, num_envs: int, steps: int) -> Callable[[], None]:
    register_with_gymnasium()
    envs = gymnasium.make_vec(find_task(name).gymnasium_id, num_envs=num_envs)
    envs.reset(seed=0)
    highest = find_task(name).make().num_actions
    actions = np.random.default_rng(0).integers(0, highest, (steps, num_envs))

    def run() -> None:
        for action in actions:
            envs.step(action)

    return run


def _seconds(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
