"""Presets: for every task, settings that are known to work, each with its source.

``fast`` is our own method, the episodic learner, tuned on 2 CPU cores; its results are in
docs/results.md. ``paper`` follows the paper's supplement. The paper gives ranges that were searched
for each task, not the values found; where a range is named below, the value lies in it and is ours.
"""

from typing import Any

from synthetic_returns.config import Config
from synthetic_returns.credit.options import EpisodicOptions
from synthetic_returns.envs.registry import find_task
from synthetic_returns.suggestions import unknown

__all__ = ["PRESETS", "preset"]

PAPER: dict[str, Any] = {
    # RL setup: mini-batch [32, 64], unroll [10, 60], entropy cost [1e-3, 1e-2], discount
    # [0.8, 0.99], alpha [0.01, 0.5], beta 1.
    "num_envs": 32,
    "devices": 0,
    "unroll_length": 20,
    "entropy_cost": 1e-2,
    "discount": 0.9,
    "alpha": 0.5,
    "beta": 1.0,
    # RMSProp: learning rate [1e-5, 4e-4], epsilon 1e-4, momentum 0, decay 0.99.
    "optimizer": "rmsprop",
    "learning_rate": 4e-4,
    "epsilon": 1e-4,
    "decay": 0.99,
    # Architecture details: 2x2 ConvNet (32, 64), dense 256, LSTM 256, policy 256, c and b 2 x 256.
    "channels": (32, 64),
    "kernel": 2,
    "stride": 1,
    "torso_sizes": (256,),
    "lstm_size": 256,
    "policy_size": 256,
    "sa_sizes": (256, 256),
    "credit": "unroll",
    # IMPALA (Espeholt et al. 2018): V-trace without decay, value cost 0.5, gradient norm 40.
    "trace_decay": 1.0,
    "value_cost": 0.5,
    "max_grad_norm": 40.0,
}
PAPER_CHAIN = PAPER | {"channels": (), "torso_sizes": (128,)}  # a single layer of 128 units

FAST: dict[str, Any] = {
    "num_envs": 32,
    "unroll_length": 10,
    "entropy_cost": 0.01,
    "entropy_fall": 1.0,
    "discount": 0.9,
    "alpha": 1.0,
    "beta": 1.0,
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "anneal": True,
    "epsilon": 1e-8,
    "trace_decay": 0.95,
    "channels": (),
    "torso_sizes": (128, 128),
    "lstm_size": 0,
    "clock": True,
    "policy_size": 128,
    "credit": "episodic",
    "episodic": EpisodicOptions(),
}

# The policy of the key room has to stay random until the first doors have taught what a key is
# worth.
FAST_KEY: dict[str, Any] = FAST | {"entropy_cost": 0.05}

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "chain": {
        # Few of the first episodes are won, and all of them are short: learn more from each.
        "fast": FAST | {"steps": 200_000, "episodic": EpisodicOptions(updates_per_episode=2.0)},
        "paper": PAPER_CHAIN | {"steps": 1_000_000},
    },
    "catch": {"fast": FAST | {"steps": 500_000}, "paper": PAPER | {"steps": 1_000_000}},
    "catch-delayed": {
        # All reward arrives at the end, where it says nothing about the last action: beta 0.
        "fast": FAST | {"steps": 600_000, "beta": 0.0},
        "paper": PAPER | {"steps": 5_000_000},
    },
    "key-to-door": {"fast": FAST_KEY | {"steps": 800_000}, "paper": PAPER | {"steps": 5_000_000}},
    "key-to-door-no-reward": {
        # Opening the door pays by ending the penalties: look further than the reward of one step.
        "fast": FAST_KEY | {"steps": 800_000, "episodic": EpisodicOptions(horizon=0.9)},
        "paper": PAPER | {"steps": 5_000_000},
    },
    "key-to-door-two-keys": {
        # The penalty of a closed door comes ten steps after the choice to open it: look further.
        # Which key is worth a longer way takes longer to find out than to reach any: explore, and
        # look at every cell alike (kernel 1), so that colours are learned once for all cells.
        "fast": FAST
        | {
            "num_envs": 16,
            "steps": 1_500_000,
            "entropy_cost": 0.1,
            "discount": 0.97,
            "channels": (16,),
            "kernel": 1,
            "episodic": EpisodicOptions(horizon=0.8),
        },
        "paper": PAPER | {"steps": 5_000_000},
    },
    "key-to-door-chained": {
        "fast": FAST_KEY | {"steps": 2_000_000},
        "paper": PAPER | {"steps": 5_000_000},
    },
    "umbrella": {"fast": FAST | {"steps": 500_000}, "paper": PAPER_CHAIN | {"steps": 1_000_000}},
}


def preset(task: str, name: str = "fast", /, *, seed: int = 0, **parameters: Any) -> Config:
    """The configuration of a preset: ``preset("catch-delayed", runs=40)``.

    Args:
      task: name of the task.
      name: name of the preset.
      seed: seed of everything random.
      **parameters: parameters of the task that differ from its defaults.
    """
    env = find_task(task).make(**parameters)
    presets = PRESETS[task]
    if name not in presets:
        raise ValueError(unknown("preset", name, presets))
    return Config(task_name=task, task=env, preset=name, seed=seed, **presets[name])
