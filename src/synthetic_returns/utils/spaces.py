"""What Gymnasium's spaces say about the size of observations."""

import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Bool

__all__ = ["is_bounded"]

NO_BOUND = 1e6  # infinity, the largest number there is, or something that says as little


def is_bounded(space: Box) -> Bool[np.ndarray, "*shape"]:
    """Which numbers of an observation have a lower and an upper bound."""
    return (np.abs(space.low) < NO_BOUND) & (np.abs(space.high) < NO_BOUND)
