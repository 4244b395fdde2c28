"""What the networks of all agents are made of."""

from typing import Any

from synthetic_returns.config import Config
from synthetic_returns.nn.networks import make_torso
from synthetic_returns.types import Key

__all__ = ["network_parts"]


def network_parts(config: Config, key: Key) -> dict[str, Any]:
    """The arguments of a ``Network`` that do not depend on the kind of agent.

    Args:
      config: the settings.
      key: of the torso; consumed here.
    """
    agent, task = config.agent, config.task
    return {
        "torso": make_torso(task.observation_shape, agent.torso, key=key),
        "feature_size": agent.torso.sizes[-1],
        "lstm_size": agent.lstm_size,
        "policy_size": agent.policy_size,
        "num_actions": task.num_actions,
        "max_episode_steps": task.max_episode_steps if agent.clock else 0,
    }
