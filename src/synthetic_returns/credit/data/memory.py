"""The bound of the memory that episodes take."""

import math

import numpy as np

from synthetic_returns.credit.spec import EpisodeSpec

__all__ = ["slots_that_fit"]

FEWEST = 16  # episodes; a regression on fewer is not worth its cost


def slots_that_fit(
    memory_mb: float, slots: int, num_envs: int, spec: EpisodeSpec, max_steps: int
) -> int:
    """How many episodes of this length fit into memory beside the running ones, up to ``slots``."""
    entries = {
        name: math.prod(shape) * np.dtype(dtype).itemsize
        for name, (shape, dtype) in spec.entries.items()
    }
    # And the terminal state.
    episode_mb = (max_steps * sum(entries.values()) + entries["observation"]) / 1e6
    fitting = int(memory_mb / episode_mb) - num_envs  # every running episode takes one too
    if fitting < min(FEWEST, slots):
        raise ValueError(
            f"memory_mb is {memory_mb:g}; {num_envs} running episodes and {FEWEST} finished ones "
            f"of up to {max_steps} states may take {(num_envs + FEWEST) * episode_mb:.0f} MB: "
            "raise memory_mb, end episodes earlier, or make observations smaller with "
            "observation_fn or a view."
        )
    return min(slots, fitting)
