"""Agent steps per second of Skiing: the emulator alone, acting, and training.

A step of the preset ``counter``, Skiing's default, is eight frames, of the paper's four. Everything
but ``train_paper`` is measured on the frames of ``counter``, in which c sees the counter of gates.
"""

import time
from collections.abc import Callable

import jax
import numpy as np

from synthetic_returns.acting.host_actor import HostActor
from synthetic_returns.agents.registry import make_learner
from synthetic_returns.bench.agent import steps_per_second
from synthetic_returns.bench.record import Record
from synthetic_returns.config import Config
from synthetic_returns.credit.none import NoCredit
from synthetic_returns.envs.host import host_environments
from synthetic_returns.presets import preset

__all__ = ["run"]

SECONDS = 60.0
BLOCK = 20  # steps of the batch between two looks at the clock
EPISODE_UPDATES = 60  # after so many, episodes have ended and the episodic learner works


def run(
    task: str = "skiing", *, seconds: float = SECONDS, episode_updates: int = EPISODE_UPDATES
) -> list[Record]:
    """Measures ``atari_steps_per_s/{env,act,train_PRESET,train_PRESET_none,train_paper}``.

    Args:
      task: a game.
      seconds: of each measurement.
      episode_updates: updates before training is measured, until episodes have ended.
    """
    ours, paper = preset(task), preset(task, "paper")
    # From the first episode on, so that what is measured is what most of a run is like.
    ours = ours.changed({"credit.replay.warmup": 1})
    rates = {
        "env": _rate(_env_block(ours), ours, seconds),
        "act": _rate(_act_block(ours), ours, seconds),
        f"train_{ours.preset}": steps_per_second(ours, seconds, warm_up=episode_updates),
        f"train_{ours.preset}_none": steps_per_second(ours.changed(credit=NoCredit()), seconds),
        "train_paper": steps_per_second(paper, seconds, warm_up=2, between=1),
    }
    return [Record(f"atari_steps_per_s/{name}", rate, "steps/s") for name, rate in rates.items()]


def _rate(block: Callable[[], None], config: Config, seconds: float) -> float:
    """Agent steps per second of a block of steps that is repeated until the time is over."""
    block()  # compiles
    start, blocks = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        block()
        blocks += 1
    return blocks * BLOCK * config.engine.num_envs / (time.perf_counter() - start)


def _env_block(config: Config) -> Callable[[], None]:
    envs = host_environments(config.task, config.engine.num_envs, jax.random.key(0))
    envs.reset()
    rng = np.random.default_rng(0)

    def block() -> None:
        for _ in range(BLOCK):
            envs.step(rng.integers(0, config.task.num_actions, config.engine.num_envs))

    return block


def _act_block(config: Config) -> Callable[[], None]:
    network = make_learner(config).init(jax.random.key(0)).agent.network
    player = HostActor(config.task, network, config.engine.num_envs, jax.random.key(1))

    def block() -> None:
        player.unroll(network, BLOCK)

    return block
