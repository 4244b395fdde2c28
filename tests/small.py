"""Training small enough for tests: a chain of 5 cells, 20 environment steps per update.

Episodes of 5 steps, and 1 to start the next, do not fit the unrolls of 5: some are always running.
"""

import dataclasses
from typing import Any

from synthetic_returns.config import Config
from synthetic_returns.credit.episodic.options import EpisodicOptions
from synthetic_returns.presets import preset

UPDATE = 20  # environment steps

SETTINGS: dict[str, Any] = {
    "num_envs": 4,
    "devices": 1,
    "unroll_length": 5,
    "torso_sizes": (8,),
    "policy_size": 8,
    "sa_sizes": (8, 8),
    "log_every": 2 * UPDATE,
    "eval_episodes": 6,
    "traces": 0,
    "episodic": EpisodicOptions(
        encoder_sizes=(8,), head_sizes=(8,), slots=16, batch_size=4, updates_per_episode=1.0
    ),
}


def small_config(credit: str = "unroll", **settings: Any) -> Config:
    """The paper's agent with an LSTM for credit on unrolls, the fast preset for episodic credit."""
    name, lstm_size = ("paper", 4) if credit == "unroll" else ("fast", 0)
    config = preset("chain", name, length=5, trigger=2, free_moves=3)
    settings = SETTINGS | {"lstm_size": lstm_size, "steps": 4 * UPDATE} | settings
    return dataclasses.replace(config, **settings)


# The same on the command line.
SMALL_FLAGS = (
    *("--task.length", "5", "--task.trigger", "2", "--task.free-moves", "3"),
    *(
        "--num-envs",
        "4",
        "--unroll-length",
        "5",
        "--devices",
        "1",
        "--traces",
        "0",
        "--eval-episodes",
        "6",
    ),
    *("--torso-sizes", "8", "--policy-size", "8", "--episodic.encoder-sizes", "8"),
    *("--episodic.head-sizes", "8", "--episodic.slots", "16", "--log-every", "40"),
)
