"""Environments that run on the host: a batch of them, stepped in numpy from Python.

The same steps as on the JAX side (FIRST, MID, LAST; rewards and discounts of arriving; the step
after a LAST one ignores its action and shows the FIRST step of the next episode), so that an agent
cannot tell where its environments run.
"""

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float32, Int, Int8, Shaped

from synthetic_returns.envs.base import Environment, VectorEnvironment
from synthetic_returns.envs.spec import TaskSpec
from synthetic_returns.types import Key, StepType, TimeStep
from synthetic_returns.utils.sharing import shared

__all__ = ["HostEnvironments", "HostStep", "HostTask", "JaxEnvironments", "host_environments"]


@dataclasses.dataclass(frozen=True)
class HostStep:
    """``TimeStep`` of a batch, in numpy; see there."""

    step_type: Int8[np.ndarray, "batch"]
    reward: Float32[np.ndarray, "batch"]
    discount: Float32[np.ndarray, "batch"]
    observation: Shaped[np.ndarray, "batch *shape"]
    events: Mapping[str, Float32[np.ndarray, "batch"]]

    @classmethod
    def first(
        cls, observation: Shaped[np.ndarray, "batch *shape"], event_names: tuple[str, ...]
    ) -> "HostStep":
        """The step that opens an episode in every environment."""
        batch = len(observation)
        return cls(
            step_type=np.full(batch, StepType.FIRST, np.int8),
            reward=np.zeros(batch, np.float32),
            discount=np.ones(batch, np.float32),
            observation=observation,
            events={name: np.zeros(batch, np.float32) for name in event_names},
        )

    @classmethod
    def later(
        cls,
        observation: Shaped[np.ndarray, "batch *shape"],
        reward: Shaped[np.ndarray, "batch"],
        *,
        terminated: Bool[np.ndarray, "batch"],
        truncated: Bool[np.ndarray, "batch"],
        restarted: Bool[np.ndarray, "batch"],
        events: Mapping[str, Shaped[np.ndarray, "batch"]],
    ) -> "HostStep":
        """A step in the terms of Gymnasium.

        Args:
          observation: what is seen now.
          reward: of arriving here.
          terminated: where the episode ends for good.
          truncated: where it is cut off, and could have gone on.
          restarted: where the step before was the last of its episode: a new one starts here,
            and whatever else is said about this step is void.
          events: what happened on this step.
        """
        last = (terminated | truncated) & ~restarted
        kind = np.where(restarted, StepType.FIRST, np.where(last, StepType.LAST, StepType.MID))
        return cls(
            step_type=kind.astype(np.int8),
            reward=np.where(restarted, 0, reward).astype(np.float32),
            discount=np.where(last & terminated, 0, 1).astype(np.float32),
            observation=observation,
            events={
                name: np.where(restarted, 0, x).astype(np.float32) for name, x in events.items()
            },
        )

    @property
    def last(self) -> Bool[np.ndarray, "batch"]:
        """Where an episode ends."""
        return self.step_type == StepType.LAST


class HostEnvironments(abc.ABC):
    """A batch of environments between two steps; one thread at a time may use it."""

    @abc.abstractmethod
    def reset(self) -> HostStep:
        """Starts an episode in every environment."""

    @abc.abstractmethod
    def step(self, action: Int[np.ndarray, "batch"]) -> HostStep:
        """Steps every environment, or starts its next episode where the last one is over."""

    def snapshot(self) -> Any:
        """All that is needed to go on from here, as a pytree of arrays; None if that cannot be."""
        return None

    def restore(self, snapshot: Any) -> None:
        """Restores a snapshot."""
        raise NotImplementedError(f"{type(self).__name__} cannot go back to a snapshot.")

    def close(self) -> None:  # noqa: B027
        """Gives back what the environments hold, if anything; harmless when repeated."""


class HostTask(TaskSpec):
    """A task whose environments run on the host only."""

    kind: ClassVar[str] = "gymnasium"

    @abc.abstractmethod
    def environments(self, num_envs: int, key: Key) -> HostEnvironments:
        """A batch of environments; the key decides all that is random, and is consumed."""


@shared
def _compiled(vector: VectorEnvironment) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Its reset and its step."""
    return jax.jit(vector.reset), jax.jit(vector.step)


class JaxEnvironments(HostEnvironments):
    """A task written in JAX, stepped from the host: the same episodes as inside a fused engine."""

    def __init__(self, env: Environment, num_envs: int, key: Key):
        """Compiles nothing yet; the first step does."""
        self._keys = jax.random.split(key, num_envs)
        self._reset, self._step = _compiled(VectorEnvironment(env))
        self._state: Any = None

    def reset(self) -> HostStep:
        """Starts an episode in every environment."""
        self._state, timestep = self._reset(self._keys)
        return _to_host(timestep)

    def step(self, action: Int[np.ndarray, "batch"]) -> HostStep:
        """Steps every environment, or starts its next episode where the last one is over."""
        self._state, timestep = self._step(self._state, jnp.asarray(action, jnp.int32))
        return _to_host(timestep)

    def snapshot(self) -> Any:
        """The state of every environment."""
        return self._state

    def restore(self, snapshot: Any) -> None:
        """Restores a snapshot."""
        self._state = snapshot


def host_environments(task: TaskSpec, num_envs: int, key: Key) -> HostEnvironments:
    """A batch of environments of any task, to be stepped from the host."""
    if isinstance(task, HostTask):
        return task.environments(num_envs, key)
    if isinstance(task, Environment):
        return JaxEnvironments(task, num_envs, key)
    raise TypeError(
        f"{type(task).__name__} can neither be stepped in JAX nor on the host; a task is an "
        "Environment or a HostTask."
    )


def draw_seed(key: Key) -> int:
    """A seed for environments that know nothing of JAX's keys."""
    return int(jax.random.randint(key, (), 0, 2**31 - 1))


def _to_host(timestep: TimeStep) -> HostStep:
    return HostStep(
        step_type=np.asarray(timestep.step_type),
        reward=np.asarray(timestep.reward),
        discount=np.asarray(timestep.discount),
        observation=np.asarray(timestep.observation),
        events={name: np.asarray(x) for name, x in timestep.events.items()},
    )
