"""Synthetic returns for any Gymnasium vector environment."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from typing_extensions import Unpack

from synthetic_returns.wrappers.credited import SYNTHETIC_RETURN, TRUE_REWARD, Credited
from synthetic_returns.wrappers.stream import Settings, StreamCredit

__all__ = ["SyntheticReturnsVectorWrapper"]


class SyntheticReturnsVectorWrapper(Credited, VectorWrapper):
    """Replaces the reward ``r`` by ``alpha * c + beta * r``, and learns ``c`` during training.

    ``c`` is the credit of the state that the agent arrives in. The info has the environment's own
    reward as ``true_reward`` and ``c`` as ``synthetic_return``. Put ``RecordEpisodeStatistics``
    inside this wrapper, so that it records true returns.
    """

    def __init__(
        self,
        env: VectorEnv,
        *,
        autoreset_mode: AutoresetMode | str | None = None,
        **settings: Unpack[Settings],
    ):
        """Wraps an environment.

        Args:
          env: the vector environment.
          autoreset_mode: how it starts new episodes; None takes what its metadata says.
          **settings: alpha, beta and the others that ``StreamCredit`` describes.
            ``max_episode_steps`` is by default the environment's time limit, or 1,000 steps if it
            has none.
        """
        super().__init__(env)
        self._mode = _autoreset_mode(env, autoreset_mode)
        limit = env.spec.max_episode_steps if env.spec is not None else None
        if limit is not None:
            settings.setdefault("max_episode_steps", limit)
        self.credit = StreamCredit(
            env.single_observation_space, env.single_action_space, env.num_envs, **settings
        )
        self._started = False

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode in every environment, or where ``options["reset_mask"]`` says."""
        rows = None if options is None else options.get("reset_mask")  # the environment removes it
        observation, info = self.env.reset(seed=seed, options=options)
        self.credit.begin(observation, rows)
        self._started = True
        return observation, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps every environment; augments the rewards."""
        if not self._started:
            raise gymnasium.error.ResetNeeded("Nothing has started: call reset() before step().")
        observation, reward, terminated, truncated, info = self.env.step(actions)
        stepped, ended = self.credit.running, terminated | truncated
        starts = {
            AutoresetMode.NEXT_STEP: ~stepped,
            AutoresetMode.SAME_STEP: ended,
            AutoresetMode.DISABLED: np.zeros_like(stepped),
        }[self._mode]
        found = info.get("_final_obs", np.zeros_like(stepped))
        augmented, c = self.credit.step(
            actions,
            observation,
            reward,
            ended=ended,
            terminated=terminated,
            starts=starts,
            final={int(row): info["final_obs"][row] for row in np.flatnonzero(found)},
        )
        info = info | {
            TRUE_REWARD: reward,
            f"_{TRUE_REWARD}": np.ones(self.num_envs, bool),
            SYNTHETIC_RETURN: c,
            f"_{SYNTHETIC_RETURN}": stepped.copy(),
        }
        return observation, augmented, terminated, truncated, info


def _autoreset_mode(env: VectorEnv, mode: AutoresetMode | str | None) -> AutoresetMode:
    mode = env.metadata.get("autoreset_mode") if mode is None else mode
    try:
        return AutoresetMode(mode)
    except ValueError:
        raise ValueError(
            f"the autoreset mode is {mode!r}, from the argument or the environment's metadata; it "
            "must be known, or episodes would be confused: pass autoreset_mode='NextStep' if the "
            "step after the end of an episode starts the next one, 'SameStep' if its last step "
            "does, 'Disabled' if you call reset."
        ) from None
