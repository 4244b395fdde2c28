"""The bound of the memory that episodes take."""

import dataclasses
import math

import numpy as np

from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.spec import EpisodeSpec

__all__ = ["slots_that_fit"]

FEWEST = 16  # episodes; a regression on fewer is not worth its cost


def slots_that_fit(memory_mb: float, replay: Replay, num_envs: int, spec: EpisodeSpec) -> Replay:
    """The replay with as many slots as fit, if they are fewer than those asked for."""
    state_bytes = math.prod(spec.observation_shape) * np.dtype(spec.observation_dtype).itemsize
    step_bytes = state_bytes + 8  # and a reward and a discount
    if spec.action_dtype is not None:
        step_bytes += math.prod(spec.action_shape) * np.dtype(spec.action_dtype).itemsize
    episode_mb = (spec.max_steps * step_bytes + state_bytes) / 1e6  # and the terminal state
    slots = int(memory_mb / episode_mb) - num_envs  # every running episode takes one too
    if slots < min(FEWEST, replay.slots):
        raise ValueError(
            f"memory_mb is {memory_mb:g}; {num_envs} running episodes and {FEWEST} finished ones "
            f"of up to {spec.max_steps} states may take {(num_envs + FEWEST) * episode_mb:.0f} MB: "
            "raise memory_mb, lower max_episode_steps, or make observations smaller with "
            "observation_fn or a view."
        )
    return dataclasses.replace(replay, slots=min(replay.slots, slots))
