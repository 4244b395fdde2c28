"""Presets: settings that are known to work, each with its source.

``fast`` is the default: an agent for the task, and the method of advances with one setting for all
tasks. ``episodic`` is our earlier method, the episodic learner, with what was tuned for it on each
task. Their results are in docs/results.md. ``counter`` is Skiing's, instead of ``fast``: there c
sees the counter of gates. ``paper`` follows the paper's supplement. The paper
gives ranges that were searched for each task, not the values found; where a range is named below,
the value lies in it and is ours.

A preset is made of groups and of single settings by their dotted names, which change the groups.
Here is what the tasks of a kind have in common; ``Task.presets`` is what one of them changes.

The agent of all of them is IMPALA. ``with_agent`` puts another one in its place.
"""

import dataclasses
from typing import Any

from synthetic_returns.agents.impala.settings import ImpalaSettings
from synthetic_returns.agents.optimizer_settings import AdamSettings, RMSPropSettings
from synthetic_returns.agents.r2d2.settings import R2D2Settings
from synthetic_returns.agents.settings import find_agent
from synthetic_returns.config import Config
from synthetic_returns.credit.advance.method import Advance
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.episodic.method import Episodic
from synthetic_returns.credit.paper.method import Paper
from synthetic_returns.credit.reward_mix import RewardMix
from synthetic_returns.credit.view import View
from synthetic_returns.engines.settings import FusedSettings, LocalSettings
from synthetic_returns.envs.registry import find_task
from synthetic_returns.envs.task import Task
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.training.settings import ReportingSettings
from synthetic_returns.utils.suggestions import unknown

__all__ = ["PRESETS", "preset", "presets_of", "with_agent"]

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

EPISODIC: Settings = {
    "engine": FusedSettings(num_envs=32, unroll_length=10),
    "reward": RewardMix(alpha=1.0, beta=1.0),
    "agent": ImpalaSettings(
        entropy_cost=0.01,
        entropy_decay=1.0,
        value_cost=1.0,
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

# Learning from each unroll several times costs little beside the credit, and a policy that stays
# random until there is some is not led astray by the first guesses.
FAST: Settings = EPISODIC | {
    "agent.epochs": 4,
    "agent.entropy_cost": 0.06,
    "credit": Advance(),
}

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

# Still the episodic learner: frames have not been tried enough with the method of advances.
FAST_ATARI: Settings = EPISODIC | {
    "steps": 4_000_000,
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
# Nothing is known about these, so nothing is tuned; rewards may come every step.
FAST_GYMNASIUM: Settings = FAST | {
    "steps": 500_000,
    "engine": LocalSettings(num_envs=16, unroll_length=10),
    "agent.discount": 0.99,
    "agent.clock": False,
}
PAPER_GYMNASIUM: Settings = PAPER | {
    "engine": LocalSettings(num_envs=32, unroll_length=20),
    "agent.discount": 0.99,
    "agent.torso.channels": (),
}

# Presets that only tasks have which say what is different there.
OF_SOME_TASKS = ("episodic", "counter")

# What a preset is for tasks of each kind; a task's own file says in what it differs.
PRESETS: dict[str, dict[str, Settings]] = {
    "jax": {"fast": FAST, "episodic": EPISODIC, "paper": PAPER},
    "atari": {"fast": FAST_ATARI, "counter": FAST_ATARI, "paper": PAPER_ATARI},
    "gymnasium": {"fast": FAST_GYMNASIUM, "paper": PAPER_GYMNASIUM},
}


# What other agents change in any preset; ``Task.presets`` under the name of an agent is what a task
# changes in turn.
OTHER_AGENTS: dict[str, Settings] = {
    # A ladder that begins higher than the paper's (0.4, 7): what all environments but a few never
    # try, no credit is ever given for.
    "r2d2": {"agent.epsilon": 0.9, "agent.epsilon_alpha": 50.0},
}


def presets_of(task: Task) -> dict[str, Settings]:
    """The presets of a task by name; ``episodic`` only where it was tuned."""
    of_kind = PRESETS[task.environment.kind]
    return {
        name: settings | dict(task.presets.get(name, {}))
        for name, settings in of_kind.items()
        if name not in task.missing_presets and (name not in OF_SOME_TASKS or name in task.presets)
    }


def with_agent(config: Config, name: str) -> Config:
    """The configuration of a preset with another agent.

    The network and the discount stay as they are. A replay's sequences are two unrolls long, so
    that they overlap by half; the first of them is for the burn-in of an LSTM.
    """
    if name == config.agent.name:
        return config
    kind = find_agent(name)
    types = {field.name: field.type for field in dataclasses.fields(kind)}
    shared = {
        field.name: getattr(config.agent, field.name)
        for field in dataclasses.fields(config.agent)
        if types.get(field.name) == field.type  # a replay is of another kind
    }
    changes: Settings = {"agent": kind(**shared)}
    if kind is R2D2Settings:
        unroll = config.engine.unroll_length
        changes["agent.sequence_length"] = 2 * unroll
        changes["agent.burn_in"] = unroll if config.agent.lstm_size else 0
    changes |= OTHER_AGENTS.get(name, {})
    changes |= find_task(config.task_name).presets.get(name, {})
    return config.changed(changes)


def preset(
    task: str,
    name: str | None = None,
    /,
    *,
    seed: int = 0,
    agent: str = "impala",
    **parameters: Any,
) -> Config:
    """The configuration of a preset: ``preset("catch-delayed", runs=40)``.

    Args:
      task: name of the task.
      name: name of the preset; by default the task's, which for nearly all is ``fast``.
      seed: seed of everything random.
      agent: name of the agent.
      **parameters: parameters of the task that differ from its defaults.
    """
    found = find_task(task)
    presets = presets_of(found)
    name = name or found.default_preset
    if name in found.missing_presets:
        raise ValueError(
            f"{task} has no preset {name!r}: {found.missing_presets[name]}. The choices are: "
            f"{', '.join(presets)}."
        )
    if name not in presets:
        raise ValueError(unknown("preset", name, presets))
    settings = dict(presets[name])
    env = found.make(**settings.pop("task", {}) | parameters)
    config = Config(task_name=task, task=env, preset=name, seed=seed).changed(settings)
    return with_agent(config, agent)
