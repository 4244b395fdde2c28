"""Presets: for every task, settings that are known to work, each with its source.

``fast`` is our own method, the episodic learner, tuned on 2 CPU cores; its results are in
docs/results.md. ``paper`` follows the paper's supplement. The paper gives ranges that were searched
for each task, not the values found; where a range is named below, the value lies in it and is ours.

A preset is made of groups and of single settings by their dotted names, which change the groups.
"""

from typing import Any

from synthetic_returns.agents.impala.settings import ImpalaSettings
from synthetic_returns.agents.optimizer_settings import AdamSettings, RMSPropSettings
from synthetic_returns.config import Config
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.episodic.method import Episodic
from synthetic_returns.credit.paper.method import Paper
from synthetic_returns.credit.reward_mix import RewardMix
from synthetic_returns.credit.view import View
from synthetic_returns.engines.settings import FusedSettings, LocalSettings
from synthetic_returns.envs.registry import find_task
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.training.settings import ReportingSettings
from synthetic_returns.utils.suggestions import unknown

__all__ = ["PRESETS", "preset", "presets_of"]

Settings = dict[str, Any]

# Long episodes: few are enough, and a checkpoint is large.
ATARI_REPORTING = ReportingSettings(eval_episodes=100, checkpoint_every=300.0)

PAPER: Settings = {
    # RL setup: mini-batch [32, 64], unroll [10, 60], entropy cost [1e-3, 1e-2], discount
    # [0.8, 0.99], alpha [0.01, 0.5], beta 1.
    "engine": FusedSettings(num_envs=32, unroll_length=20, devices=0),
    "reward": RewardMix(alpha=0.5, beta=1.0),
    "agent": ImpalaSettings(
        entropy_cost=1e-2,
        discount=0.9,
        # IMPALA (Espeholt et al. 2018): V-trace without decay, value cost 0.5.
        trace_decay=1.0,
        value_cost=0.5,
        # Architecture details: 2x2 ConvNet (32, 64), dense 256, LSTM 256, policy 256.
        torso=TorsoSettings(channels=(32, 64), kernel=2, stride=1, sizes=(256,)),
        lstm_size=256,
        policy_size=256,
    ),
    # c and b 2 x 256.
    "credit": Paper(sizes=(256, 256)),
    # RMSProp: learning rate [1e-5, 4e-4], epsilon 1e-4, momentum 0, decay 0.99; IMPALA: gradient
    # norm 40.
    "optimizer": RMSPropSettings(learning_rate=4e-4, epsilon=1e-4, decay=0.99, max_grad_norm=40.0),
}
# A single layer of 128 units.
PAPER_CHAIN = PAPER | {"agent.torso": TorsoSettings(sizes=(128,))}

FAST: Settings = {
    "engine": FusedSettings(num_envs=32, unroll_length=10),
    "reward": RewardMix(alpha=1.0, beta=1.0),
    "agent": ImpalaSettings(
        entropy_cost=0.01,
        entropy_decay=1.0,
        discount=0.9,
        trace_decay=0.95,
        torso=TorsoSettings(sizes=(128, 128)),
        lstm_size=0,
        clock=True,
        policy_size=128,
    ),
    "credit": Episodic(),
    "optimizer": AdamSettings(learning_rate=1e-3, anneal=True, epsilon=1e-8),
}

# The policy of the key room has to stay random until the first doors have taught what a key is
# worth.
FAST_KEY = FAST | {"agent.entropy_cost": 0.03}

PAPER_ATARI: Settings = PAPER | {
    # The frames of IMPALA, on which the paper is silent.
    "task": {
        "height": 84,
        "width": 84,
        "rows": None,
        "ground": None,
        "frames": 4,
        "frame_skip": 4,
    },
    "steps": 50_000_000,
    # The Skiing section and its sweep: mini-batch 32, unroll 80, discount 0.99; entropy cost
    # [1.5e-2, 3.5e-2], alpha [9e-3, 1.4e-2], beta 0.
    "engine": LocalSettings(num_envs=32, unroll_length=80, actors=2),
    "agent.discount": 0.99,
    "agent.entropy_cost": 2.5e-2,
    "reward.alpha": 1.2e-2,
    # Architecture details: 3x3 ConvNet (32, 64, 64) with stride 2, memory of 2000 states.
    "agent.torso": TorsoSettings(channels=(32, 64, 64), kernel=3, stride=2, sizes=(256,)),
    "credit": Paper(sizes=(256, 256), two_stage=True, current="core", capacity=2000),
    # Adam: learning rate [1.25e-5, 4.5e-5], epsilon [1.84e-4, 4e-4], b1 [0.85, 1], b2 [0.8, 0.9].
    "optimizer": AdamSettings(learning_rate=3e-5, epsilon=3e-4, b1=0.9, b2=0.85),
    "reporting": ATARI_REPORTING,
}
# In units of a missed gate, so that losses and their weights are those of other tasks (ours: the
# paper says nothing about the size of Skiing's rewards).
PAPER_SKIING = PAPER_ATARI | {"reward.beta": 0.0, "reward.scale": 1 / 500}

FAST_ATARI: Settings = FAST | {
    "engine": LocalSettings(num_envs=32, unroll_length=20),
    "agent.discount": 0.99,
    "agent.torso": TorsoSettings(channels=(32, 64, 64), patches=(4, 2, 2), sizes=(128,)),
    "agent.clock": False,
    # Long episodes of large frames: few are kept, thinned, and not in the checkpoints.
    "credit": Episodic(
        encoder=TorsoSettings(channels=(16, 32, 32), patches=(4, 2, 2), sizes=(64,)),
        replay=Replay(slots=32, batch_size=4, updates_per_episode=1.0, warmup=4, save=False),
    ),
    "view": View(stride=4),
    "optimizer": AdamSettings(learning_rate=5e-4, anneal=True, epsilon=1e-5),
    "reporting": ATARI_REPORTING,
}
FAST_PONG = FAST_ATARI | {
    "steps": 2_000_000,
    # The emulator takes most of the time, so each unroll is learned from several times.
    "engine.num_envs": 16,
    "agent.epochs": 3,
    "optimizer.learning_rate": 1e-3,
    # A point is lost a few steps after the ball was not met: no need to look further.
    "agent.discount": 0.95,
    # Few and large patches, because little of the court is ever worth a look.
    "agent.torso.channels": (32, 64),
    "agent.torso.patches": (8, 2),
}
FAST_SKIING = FAST_ATARI | {
    "steps": 7_500_000,  # of 8 frames: 60 million frames
    # In units of a missed gate; a step costs 0.027.
    "reward.scale": 1 / 500,
    # The penalties of the last step are what synthetic returns have paid before.
    "reward.last_reward": 0.0,
    # Who turns at random skis across the slope, and passes hardly a gate. Who mostly keeps the
    # heading passes some, now more, now fewer: only runs that differ tell what a gate is worth.
    "agent.action_prior": 0.9,
    "agent.entropy_cost": 0.05,
    # A gate is twelve steps away, and how to get there takes many small updates to learn.
    "engine.num_envs": 16,
    "engine.unroll_length": 10,
    "agent.epochs": 2,
    "optimizer.learning_rate": 1e-3,
    "agent.discount": 0.97,
    # Where the flags are, not only that there are some: the last layer keeps 6 x 10 places.
    "agent.torso.channels": (16, 32),
    "agent.torso.patches": (4, 2),
    "view": View(
        # What changes on the display: the number of gates left, and nothing else of it. It falls
        # when a gate is passed; what that means is for c to find out.
        rows=(0, 3),
        columns=(30, 46),
        changes=True,
        # The clock's limit escapes the penalties: as bad as to miss every gate.
        truncated_reward=-10_000.0,
    ),
    "credit": Episodic(
        encoder=TorsoSettings(sizes=(64,)),
        head_sizes=(32,),
        gate="end",
        # A b that could read the number would explain the penalties, and leave nothing to c.
        current="time",
        end=True,
        learning_rate=2e-3,
        replay=Replay(updates_per_episode=10.0, warmup=16, save=False),
    ),
}

PRESETS: dict[str, dict[str, Settings]] = {
    "chain": {
        # Few of the first episodes are won, and all of them are short: learn more from each.
        "fast": FAST | {"steps": 200_000, "credit.replay.updates_per_episode": 2.0},
        "paper": PAPER_CHAIN | {"steps": 1_000_000},
    },
    "catch": {"fast": FAST | {"steps": 500_000}, "paper": PAPER | {"steps": 1_000_000}},
    "catch-delayed": {
        # All reward arrives at the end, where it says nothing about the last action: beta 0.
        "fast": FAST | {"steps": 600_000, "reward.beta": 0.0},
        "paper": PAPER | {"steps": 5_000_000},
    },
    "key-to-door": {"fast": FAST_KEY | {"steps": 800_000}, "paper": PAPER | {"steps": 5_000_000}},
    "key-to-door-no-reward": {
        # Opening the door pays by ending the penalties: look further than the reward of one step.
        "fast": FAST_KEY | {"engine.num_envs": 16, "steps": 800_000, "credit.horizon": 5},
        "paper": PAPER | {"steps": 5_000_000},
    },
    "key-to-door-two-keys": {
        # The penalty of a closed door comes after the choice to open it: look at the whole return.
        # Which key is worth a longer way takes longer to find out than to reach any: explore, and
        # look at every cell alike (kernel 1), so that colours are learned once for all cells.
        "fast": FAST
        | {
            "steps": 1_500_000,
            "engine.num_envs": 16,
            "agent.epochs": 4,
            "agent.entropy_cost": 0.3,
            "agent.discount": 0.97,
            "agent.torso.channels": (16,),
            "agent.torso.kernel": 1,
            "credit.horizon": 85,
        },
        "paper": PAPER | {"steps": 5_000_000},
    },
    "key-to-door-chained": {
        "fast": FAST_KEY | {"steps": 2_000_000},
        "paper": PAPER | {"steps": 5_000_000},
    },
    "umbrella": {"fast": FAST | {"steps": 500_000}, "paper": PAPER_CHAIN | {"steps": 1_000_000}},
    "pong": {"fast": FAST_PONG, "paper": PAPER_ATARI},
    "skiing": {"fast": FAST_SKIING, "paper": PAPER_SKIING},
}

# Nothing is known about these, so nothing is tuned; rewards may come every step.
GYMNASIUM_PRESETS: dict[str, Settings] = {
    "fast": FAST
    | {
        "steps": 500_000,
        "engine": LocalSettings(num_envs=16, unroll_length=10),
        "agent.discount": 0.99,
        "agent.clock": False,
        "credit": Episodic(replay=Replay(slots=128, updates_per_episode=0.3)),
    },
    "paper": PAPER
    | {
        "engine": LocalSettings(num_envs=32, unroll_length=20),
        "agent.discount": 0.99,
        "agent.torso.channels": (),
    },
}
ATARI_PRESETS: dict[str, Settings] = {
    "fast": FAST_ATARI | {"steps": 4_000_000},
    "paper": PAPER_ATARI,
}


def presets_of(task: str) -> dict[str, Settings]:
    """The presets of a task by name; those of ``gym:`` and ``ale:`` are the same for all."""
    kind = task.partition(":")[0]
    return {"gym": GYMNASIUM_PRESETS, "ale": ATARI_PRESETS}.get(kind) or PRESETS[task]


def preset(task: str, name: str = "fast", /, *, seed: int = 0, **parameters: Any) -> Config:
    """The configuration of a preset: ``preset("catch-delayed", runs=40)``.

    Args:
      task: name of the task.
      name: name of the preset.
      seed: seed of everything random.
      **parameters: parameters of the task that differ from its defaults.
    """
    found, presets = find_task(task), presets_of(task)
    if name not in presets:
        raise ValueError(unknown("preset", name, presets))
    settings = dict(presets[name])
    env = found.make(**settings.pop("task", {}) | parameters)
    return Config(task_name=task, task=env, preset=name, seed=seed).changed(settings)
