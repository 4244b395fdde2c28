"""Synthetic returns for Stable-Baselines3; needs the extra ``synthetic-returns[sb3]``."""

from typing import Any

import numpy as np
from typing_extensions import Unpack

try:
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
except ImportError as error:
    raise ImportError(
        "Stable-Baselines3 is not installed; this wrapper is for it: "
        "pip install 'synthetic-returns[sb3]'"
    ) from error

from synthetic_returns.wrappers.credited import SYNTHETIC_RETURN, TRUE_REWARD, Credited
from synthetic_returns.wrappers.stream import Settings, StreamCredit

__all__ = ["SyntheticReturnsCallback", "SyntheticReturnsVecEnv", "time_limit"]


class SyntheticReturnsVecEnv(Credited, VecEnvWrapper):
    """Replaces the reward ``r`` by ``alpha * c + beta * r``, and learns ``c`` during training.

    ``c`` is the credit of the state that the agent arrives in. The info has the environment's own
    reward as ``true_reward`` and ``c`` as ``synthetic_return``. Put ``VecMonitor`` or ``Monitor``
    inside this wrapper, so that Stable-Baselines3 logs true returns.
    """

    def __init__(self, venv: VecEnv, **settings: Unpack[Settings]):
        """Wraps an environment.

        Args:
          venv: the environment.
          **settings: alpha, beta and the others that ``StreamCredit`` describes.
            ``max_episode_steps`` is by default the environment's time limit, or 1,000 steps if it
            has none.
        """
        super().__init__(venv)
        limit = time_limit(venv)
        if limit is not None:
            settings.setdefault("max_episode_steps", limit)
        self.credit = StreamCredit(
            venv.observation_space, venv.action_space, venv.num_envs, **settings
        )
        self._action: np.ndarray | None = None

    def reset(self) -> Any:
        """Starts an episode in every environment."""
        observation = self.venv.reset()
        self.credit.begin(observation)
        return observation

    def step_async(self, actions: np.ndarray) -> None:
        """Sends the actions to the environments."""
        self._action = actions
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Waits for the environments and augments their rewards."""
        observation, reward, done, infos = self.venv.step_wait()
        # Where an episode is done, the observation already is the first of the next one.
        cut_off = np.array([info.get("TimeLimit.truncated", False) for info in infos])
        augmented, c = self.credit.step(
            self._action,
            observation,
            reward,
            ended=done,
            terminated=done & ~cut_off,
            starts=done,
            final={
                int(row): infos[row].get("terminal_observation") for row in np.flatnonzero(done)
            },
        )
        infos = [
            info | {TRUE_REWARD: float(reward[i]), SYNTHETIC_RETURN: float(c[i])}
            for i, info in enumerate(infos)
        ]
        return observation, augmented, done, infos


class SyntheticReturnsCallback(BaseCallback):
    """Adds the diagnostics of credit to Stable-Baselines3's log, as ``synthetic_returns/...``.

    It reports on the replay buffer if that pays credit, otherwise on the wrapped environment.
    """

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        replay = getattr(self.model, "replay_buffer", None)
        credited: Any = replay if isinstance(replay, Credited) else self.training_env
        for name, value in credited.report().items():
            self.logger.record(f"synthetic_returns/{name}", value)


def time_limit(venv: VecEnv) -> int | None:
    """The time limit that the environments were registered with, if they say."""
    try:
        spec = venv.get_attr("spec", indices=[0])[0]
    except Exception:  # what a VecEnv raises for an attribute that it lacks is its own affair
        return None
    return getattr(spec, "max_episode_steps", None)
