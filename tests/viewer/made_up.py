"""An episode that was never played."""

import numpy as np

from synthetic_returns.credit.explanation import Term
from synthetic_returns.viewer.recording import Recording


def made_up(steps: int = 30, key_at: int = 7, total: float = 5.0, **changes) -> Recording:
    """An episode with a spike where a key is taken; frame t is t in every pixel."""
    x = np.arange(steps + 1)
    reward = np.where(x == steps, total, 0.0)
    c = np.where(x == key_at, 1.5, 0.02 * np.sin(x))
    frames = np.broadcast_to(x[:, None, None, None], (steps + 1, 4, 5, 3)).astype(np.uint8)
    leaving = np.append(0.9 * reward[1:], np.nan)
    fields = {
        "terms": {
            "c": Term(c, "synthetic return c"),
            "g": Term(np.append(x[1:] == steps, np.nan), "gate g", "gate", "leaving"),
            "b": Term(leaving / 2, "baseline b", "line", "leaving"),
            "r_hat": Term(leaving, "predicted reward", "line", "leaving"),
        },
        "frames": frames,
        "events": {"key": (x == key_at) * 1.0, "apple": (x % 9 == 4) * 1.0, "door": x == steps},
        "phases": (("key room", 0), ("apple room", 10), ("door room", 28)),
    }
    return Recording(reward, **fields | changes)


def one_of_each_kind(states: int) -> dict[str, Term]:
    """The terms of a method that nobody has written: one of each kind, the credit a line."""
    t = np.arange(states)
    unknown_at_the_end = np.where(t == states - 1, np.nan, 1.0)
    return {
        "worth": Term(np.cos(t / 3), "worth of arriving"),
        "doubt": Term(0.5 * unknown_at_the_end, "doubt about leaving", "gate", "leaving"),
        "guess": Term(t * unknown_at_the_end, "guess of the reward", "line", "leaving"),
        "level": Term(t / 2, "level so far"),
        "choice": Term(np.outer(np.sin(t), [1.0, -1.0, 0.5]), "advantage", "actions", "arriving"),
        "links": Term(np.tril(np.outer(t, t) / 9.0, -1), "links to the past", "pairs"),
    }
