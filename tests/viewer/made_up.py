"""An episode that was never played."""

import numpy as np

from synthetic_returns.viewer.recording import Recording


def made_up(steps: int = 30, key_at: int = 7, total: float = 5.0, **changes) -> Recording:
    """An episode with a spike where a key is taken; frame t is t in every pixel."""
    x = np.arange(steps + 1)
    reward = np.where(x == steps, total, 0.0)
    c = np.where(x == key_at, 1.5, 0.02 * np.sin(x))
    frames = np.broadcast_to(x[:, None, None, None], (steps + 1, 4, 5, 3)).astype(np.uint8)
    shifted = np.where(x == 0, np.nan, 0.9 * reward)
    fields = {
        "frames": frames,
        "gate": np.where(x == 0, np.nan, (x == steps).astype(float)),
        "baseline": shifted / 2,
        "predicted": shifted,
        "events": {"key": (x == key_at) * 1.0, "apple": (x % 9 == 4) * 1.0, "door": x == steps},
        "phases": (("key room", 0), ("apple room", 10), ("door room", 28)),
    }
    return Recording(reward, c, **fields | changes)
