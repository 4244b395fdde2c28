"""The bound of the memory that episodes take."""

import dataclasses
import math
from typing import Any

import numpy as np

from synthetic_returns.credit.episodic.options import EpisodicOptions

__all__ = ["slots_that_fit"]

FEWEST = 16  # episodes; a regression on fewer is not worth its cost


def slots_that_fit(
    memory_mb: float,
    options: EpisodicOptions,
    num_envs: int,
    longest: int,
    observation_shape: tuple[int, ...],
    dtype: Any,
) -> EpisodicOptions:
    """The options with as many slots as fit, if they are fewer than those asked for."""
    state_bytes = math.prod(observation_shape) * np.dtype(dtype).itemsize + 4  # and a reward
    episode_mb = longest * state_bytes / 1e6
    slots = int(memory_mb / episode_mb) - num_envs  # every running episode takes one too
    if slots < min(FEWEST, options.slots):
        raise ValueError(
            f"memory_mb is {memory_mb:g}; {num_envs} running episodes and {FEWEST} finished ones "
            f"of up to {longest} steps may take {(num_envs + FEWEST) * episode_mb:.0f} MB: raise "
            "memory_mb, lower longest, or make observations smaller with observation_fn."
        )
    return dataclasses.replace(options, slots=min(options.slots, slots))
