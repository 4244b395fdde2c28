"""Any Gymnasium environment as a task: ``gym:CartPole-v1``.

Observation: that of the environment, which has to be a Box; bytes stay bytes, everything else
  becomes float32.
Actions: those of the environment, which have to be Discrete.
Reward, termination: those of the environment. An episode that is cut off by its time limit is
  bootstrapped from.
"""

import dataclasses
import functools
from typing import Annotated, Any

import gymnasium
import numpy as np
import tyro
from jaxtyping import Int

from synthetic_returns.envs.host import HostEnvironments, HostStep, HostTask, draw_seed
from synthetic_returns.envs.task import Task
from synthetic_returns.types import Key
from synthetic_returns.utils.checks import check_positive
from synthetic_returns.utils.spaces import is_bounded

__all__ = ["GymnasiumEnvironments", "GymnasiumTask", "named"]


@dataclasses.dataclass(frozen=True)
class GymnasiumTask(HostTask):
    """An environment that is registered with Gymnasium.

    Attributes:
      env_id: its id; ``module:id`` imports the module that registers it first.
      max_episode_steps: the time limit, for environments that have none, or another one.
    """

    env_id: Annotated[str, tyro.conf.Suppress]
    """The environment's id."""
    max_episode_steps: int | None = None  # pyright: ignore
    """The time limit of an episode; by default the environment's own."""

    def __post_init__(self) -> None:
        space, actions = self._spaces
        if not isinstance(space, gymnasium.spaces.Box):
            raise ValueError(
                f"the observations of {self.env_id} are a {type(space).__name__} and have to be a "
                "Box: register it with a wrapper that flattens them."
            )
        if not isinstance(actions, gymnasium.spaces.Discrete):
            raise ValueError(
                f"the actions of {self.env_id} are a {type(actions).__name__} and have to be "
                "Discrete: register it with a wrapper that offers a few of them."
            )
        limit = self.max_episode_steps
        limit = _own_limit(self.env_id) if limit is None else limit
        check_positive("max_episode_steps", limit)
        object.__setattr__(self, "max_episode_steps", limit)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """That of the environment."""
        return self._spaces[0].shape

    @property
    def observation_dtype(self) -> np.dtype:
        """Bytes for images, float32 for all else."""
        is_bytes = self._spaces[0].dtype == np.uint8
        return np.dtype(np.uint8 if is_bytes else np.float32)

    @property
    def unbounded(self) -> bool:
        """Whether the environment names no bounds."""
        space = self._spaces[0]
        return space.dtype != np.uint8 and not is_bounded(space).all()

    @property
    def num_actions(self) -> int:
        """That of the environment."""
        return int(self._spaces[1].n)

    @property
    def event_names(self) -> tuple[str, ...]:
        """None: what happens there is not known."""
        return ()

    def environments(self, num_envs: int, key: Key) -> HostEnvironments:
        """The environments one after another in this process."""
        return GymnasiumEnvironments(
            gymnasium.vector.SyncVectorEnv([self._make] * num_envs),
            draw_seed(key),
            self.observation_dtype,
        )

    def _make(self) -> gymnasium.Env:
        return gymnasium.make(self.env_id, max_episode_steps=self.max_episode_steps)

    @property
    def _spaces(self) -> tuple[Any, Any]:
        return _spaces(self.env_id)


class GymnasiumEnvironments(HostEnvironments):
    """Any Gymnasium vector environment with next-step reset."""

    def __init__(self, envs: gymnasium.vector.VectorEnv, seed: int, dtype: np.dtype):
        """Takes over the environments.

        Args:
          envs: Box observations, Discrete actions.
          seed: of the first episodes.
          dtype: what observations become.
        """
        mode = envs.metadata.get("autoreset_mode")
        if mode != gymnasium.vector.AutoresetMode.NEXT_STEP:
            raise ValueError(
                f"the vector environment restarts episodes by {mode} and the last observation of "
                "an episode would be lost: make it with AutoresetMode.NEXT_STEP."
            )
        self._envs, self._seed, self._dtype = envs, seed, dtype
        self._first_action = int(getattr(envs.single_action_space, "start", 0))
        self._over = np.zeros(envs.num_envs, bool)

    def reset(self) -> HostStep:
        """Starts an episode in every environment."""
        observation, _ = self._envs.reset(seed=self._seed)
        self._over = np.zeros(self._envs.num_envs, bool)
        return HostStep.first(self._observation(observation), ())

    def step(self, action: Int[np.ndarray, "batch"]) -> HostStep:
        """Steps every environment, or starts its next episode where the last one is over."""
        observation, reward, terminated, truncated, _ = self._envs.step(action + self._first_action)
        step = HostStep.later(
            self._observation(observation),
            np.asarray(reward),
            terminated=np.asarray(terminated),
            truncated=np.asarray(truncated),
            restarted=self._over,
            events={},
        )
        self._over = step.last
        return step

    def close(self) -> None:
        """Closes the environments."""
        self._envs.close()

    def _observation(self, observation: Any) -> np.ndarray:
        return np.array(observation, self._dtype)


def named(env_id: str) -> Task:
    """The task ``gym:ID``."""
    return Task(
        name=f"gym:{env_id}",
        description=f"the Gymnasium environment {env_id}",
        environment=GymnasiumTask,
        defaults={"env_id": env_id},
        unscripted="nothing is known about what happens there",
    )


def _own_limit(env_id: str) -> int:
    limit = gymnasium.spec(env_id).max_episode_steps
    if limit is None:
        raise ValueError(
            f"{env_id} has no time limit, and whole episodes have to fit into memory: give one "
            "with --task.max-episode-steps."
        )
    return limit


@functools.cache
def _spaces(env_id: str) -> tuple[gymnasium.Space, gymnasium.Space]:
    """Of observations and of actions."""
    env = gymnasium.make(env_id)
    spaces = env.observation_space, env.action_space
    env.close()
    return spaces
