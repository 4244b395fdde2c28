"""Training small enough for tests: a chain of 5 cells, 20 environment steps per update.

Episodes of 5 steps, and 1 to start the next, do not fit the unrolls of 5: some are always running.
"""

from collections.abc import Mapping
from typing import Any

import jax

from synthetic_returns.agents.agent import Agent
from synthetic_returns.agents.registry import make_learner
from synthetic_returns.agents.replay.settings import SequenceReplaySettings
from synthetic_returns.config import Config
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.episodic.method import Episodic
from synthetic_returns.credit.explainer import Explainer
from synthetic_returns.credit.none import NoCredit
from synthetic_returns.credit.paper.method import Paper
from synthetic_returns.engines.credit import explainer_of, make_driver
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.presets import preset, with_agent
from synthetic_returns.training.settings import ReportingSettings

UPDATE = 20  # environment steps

SETTINGS: dict[str, Any] = {
    "engine.num_envs": 4,
    "engine.unroll_length": 5,
    "engine.devices": 1,
    "agent.torso.sizes": (8,),
    "agent.policy_size": 8,
    "reporting": ReportingSettings(log_every=2 * UPDATE, eval_episodes=6, traces=0),
}
OF_AGENTS: dict[str, dict[str, Any]] = {
    "impala": {},
    "r2d2": {
        "agent.sequence_length": 8,
        "agent.burn_in": 3,
        "agent.batch_size": 4,
        "agent.updates_per_unroll": 2,
        "agent.replay": SequenceReplaySettings(capacity=12 * UPDATE, warmup=3 * UPDATE),
    },
}
METHODS = {
    "none": NoCredit(),
    "paper": Paper(sizes=(8, 8)),
    "episodic": Episodic(
        encoder=TorsoSettings(sizes=(8,)),
        head_sizes=(8,),
        replay=Replay(slots=16, batch_size=4, updates_per_episode=1.0),
    ),
}


def small_config(
    credit: str = "paper",
    settings: Mapping[str, Any] | None = None,
    /,
    *,
    agent: str = "impala",
    **more: Any,
) -> Config:
    """The paper's agent with an LSTM, but the preset of that name for episodic credit."""
    name, lstm_size = ("episodic", 0) if credit == "episodic" else ("paper", 4)
    config = preset("chain", name, length=5, trigger=2, free_moves=3)
    config = with_agent(config.changed(credit=METHODS[credit]), agent)
    own = {"agent.lstm_size": lstm_size, "steps": 4 * UPDATE} | OF_AGENTS[agent]
    return config.changed({**SETTINGS, **own, **(settings or {}), **more})


# The same on the command line.
SMALL_FLAGS = (
    *("--task.length", "5", "--task.trigger", "2", "--task.free-moves", "3"),
    *("--engine.num-envs", "4", "--engine.unroll-length", "5", "--engine.devices", "1"),
    *("--agent.torso.sizes", "8", "--agent.policy-size", "8"),
    *("--credit.encoder.sizes", "8", "--credit.head-sizes", "8", "--credit.replay.slots", "16"),
    *("--reporting.log-every", "40", "--reporting.eval-episodes", "6", "--reporting.traces", "0"),
)


def untrained(config: Config) -> tuple[Agent, Explainer | None]:
    """An agent that has learned nothing, and what explains its credit."""
    agent = make_learner(config).init(jax.random.key(0)).agent
    driver = make_driver(config, 0)
    return agent, explainer_of(config, agent, None if driver is None else driver.state)
