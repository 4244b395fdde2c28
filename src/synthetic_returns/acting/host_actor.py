"""Acting in environments that run on the host: the agent is compiled, the loop is Python's."""

import contextlib
import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Shaped

from synthetic_returns.acting.actor import agent_step
from synthetic_returns.envs.host import HostStep, host_environments
from synthetic_returns.envs.spec import TaskSpec
from synthetic_returns.nn.networks import CoreState, Network
from synthetic_returns.types import Key, TimeStep, Trajectory, split_each
from synthetic_returns.utils.buckets import bucket

__all__ = ["UNROLL", "HostActor", "play_episodes"]

UNROLL = 32  # steps between two looks at whether all episodes are over
BLOCK = 16 * UNROLL  # steps whose observations are kept together until all are known


class HostActor:
    """A batch of environments and the agent in them, between two unrolls.

    The twin of ``actor.start`` and ``actor.unroll``: on a task written in JAX, the same key gives
    the same steps, actions and cores.
    """

    def __init__(self, task: TaskSpec, network: Network, num_envs: int, key: Key):
        """Starts the environments.

        Args:
          task: what to play.
          network: any with the structure of those that will act; it makes the first core.
          num_envs: environments stepped together.
          key: decides all that is random; consumed here.
        """
        env_key, action_key = jax.random.split(key)
        self._envs = host_environments(task, num_envs, env_key)
        self._step = self._envs.reset()
        self._core = network.initial_state(num_envs)
        self._keys = jax.random.split(action_key, num_envs)

    def unroll(self, network: Network, length: int, *, greedy: bool = False) -> Trajectory:
        """Acts for ``length`` steps from where the last unroll ended."""
        core = self._core
        steps, actions, logits, values = [self._step], [], [], []
        for _ in range(length):
            action, logit, value, self._core, self._keys = _act(
                network, _to_device(self._step), self._core, self._keys, greedy
            )
            actions.append(np.asarray(action))
            logits.append(np.asarray(logit))
            values.append(np.asarray(value))
            self._step = self._envs.step(actions[-1])
            steps.append(self._step)
        # Host steps are stacked as they are: bytes stay bytes on their way to the learner.
        return Trajectory(_stack(steps), _device(actions), _device(logits), _device(values), core)

    def snapshot(self) -> dict[str, Any] | None:
        """All that is needed to go on from here; None if the environments cannot be saved."""
        envs = self._envs.snapshot()
        if envs is None:
            return None
        step = _to_device(self._step)
        return {"envs": envs, "step": step, "core": self._core, "keys": self._keys}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Restores a snapshot."""
        self._envs.restore(snapshot["envs"])
        step: TimeStep = snapshot["step"]
        self._step = HostStep(
            *(np.asarray(x) for x in (step.step_type, step.reward, step.discount)),
            observation=np.asarray(step.observation),
            events={name: np.asarray(x) for name, x in step.events.items()},
        )
        self._core, self._keys = snapshot["core"], snapshot["keys"]

    def close(self) -> None:
        """Closes the environments."""
        self._envs.close()


def play_episodes(
    task: TaskSpec, network: Network, episodes: int, key: Key, *, greedy: bool = False
) -> Trajectory:
    """One whole episode in each column; what lies behind its end means nothing.

    Observations, which may be images, stay on the host, and there is one copy of them.
    """
    player = HostActor(task, network, episodes, key)
    unrolls: list[Trajectory] = []
    seen = _Observations()
    over = np.zeros(episodes, bool)
    with contextlib.closing(player):
        while not over.all():
            unroll = player.unroll(network, UNROLL, greedy=greedy)
            seen.add(np.asarray(unroll.timestep.observation))
            unrolls.append(eqx.tree_at(_observation, unroll, None))
            over |= np.asarray(unroll.timestep.last).any(axis=0)
    *_, newest = unrolls
    # The last step of an unroll is the first of the next.
    steps = [jax.tree.map(lambda x: x[:-1], unroll.timestep) for unroll in unrolls]
    steps.append(jax.tree.map(lambda x: x[-1:], newest.timestep))
    missing = bucket(len(unrolls) * UNROLL) - len(unrolls) * UNROLL

    def joined(*parts: Any) -> Any:
        """One after another, and the last entry repeated up to one of few lengths."""
        padding = jnp.repeat(parts[-1][-1:], missing, axis=0)
        return jnp.concatenate([*parts, padding])

    timestep = jax.tree.map(joined, *steps)
    observation = seen.take(len(timestep.reward))
    return Trajectory(
        timestep=dataclasses.replace(timestep, observation=observation),
        action=joined(*(unroll.action for unroll in unrolls)),
        logits=joined(*(unroll.logits for unroll in unrolls)),
        value=joined(*(unroll.value for unroll in unrolls)),
        core=None,
    )


class _Observations:
    """What was seen in one unroll after another, in blocks that are given back one by one.

    Blocks are so large that memory goes back to the system, which it does not for small arrays.
    """

    def __init__(self) -> None:
        self._blocks: list[np.ndarray] = []
        self._steps = 0

    def add(self, observation: np.ndarray) -> None:
        """Adds an unroll; the last state of the one before is its first."""
        at = self._steps % BLOCK
        if at == 0:
            self._blocks.append(np.empty((BLOCK + 1, *observation.shape[1:]), observation.dtype))
        self._blocks[-1][at : at + len(observation)] = observation
        self._steps += len(observation) - 1

    def take(self, length: int) -> np.ndarray:
        """All of it, once, followed by nothing up to a length."""
        first = self._blocks[0]
        joined = np.zeros((length, *first.shape[1:]), first.dtype)
        del first
        for start in range(0, self._steps, BLOCK):
            states = min(BLOCK, self._steps - start) + 1
            joined[start : start + states] = self._blocks.pop(0)[:states]
        return joined


def _observation(trajectory: Trajectory) -> Any:
    return trajectory.timestep.observation


@eqx.filter_jit
def _act(
    network: Network,
    timestep: TimeStep,
    core: CoreState,
    keys: Shaped[Key, "batch"],
    greedy: bool,
) -> tuple[Any, ...]:
    keys, action_keys = split_each(keys)
    action, logits, value, core = agent_step(network, timestep, core, action_keys, greedy=greedy)
    return action, logits, value, core, keys


def _to_device(step: HostStep) -> TimeStep:
    return TimeStep(
        step_type=jnp.asarray(step.step_type),
        reward=jnp.asarray(step.reward),
        discount=jnp.asarray(step.discount),
        observation=jnp.asarray(step.observation),
        events={name: jnp.asarray(x) for name, x in step.events.items()},
    )


def _stack(steps: list[HostStep]) -> TimeStep:
    """Steps one after another, ``[T]`` of ``[B]``."""
    names = steps[0].events
    return TimeStep(
        step_type=_device([step.step_type for step in steps]),
        reward=_device([step.reward for step in steps]),
        discount=_device([step.discount for step in steps]),
        observation=_device([step.observation for step in steps]),
        events={name: _device([step.events[name] for step in steps]) for name in names},
    )


def _device(arrays: list[np.ndarray]) -> jax.Array:
    return jnp.asarray(np.stack(arrays))
