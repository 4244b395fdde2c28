"""The credit of a configuration, at any engine: who gives it, and who can explain it."""

import jax

from synthetic_returns.agents.agent import Agent
from synthetic_returns.config import Config
from synthetic_returns.credit.auxiliary import AuxiliaryMethod
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.method import Assigner
from synthetic_returns.credit.model import AuxiliaryCredit, Credit, EpisodeCredit
from synthetic_returns.credit.novelty.method import credit_state
from synthetic_returns.credit.spec import EpisodeSpec

__all__ = ["credit_of", "make_driver"]


def make_driver(
    config: Config, seed: int, streams: int = 1, num_envs: int | None = None
) -> CreditDriver | None:
    """The driver of what pays beside the environment: a credit method, novelty, or both.

    Args:
      config: the settings.
      seed: of the run.
      streams: how many actors send unrolls; each has environments of its own.
      num_envs: how many each has; the whole batch unless given.
    """
    payer = config.payer
    if payer is None:
        return None
    return CreditDriver(
        payer,
        EpisodeSpec.of_task(config.task, config.view),
        config.view,
        max_episode_steps=config.task.max_episode_steps,
        num_envs=num_envs or config.engine.num_envs,
        streams=streams,
        key=jax.random.fold_in(jax.random.key(seed), 1),
    )


def credit_of(config: Config, agent: Agent, driver: CreditDriver | None) -> Credit | None:
    """What explains the credit of an agent; None if it gets none."""
    if driver is not None and isinstance(config.credit, Assigner):
        return EpisodeCredit(credit_state(driver.state), config.credit, driver.view)
    if isinstance(config.credit, AuxiliaryMethod):
        return AuxiliaryCredit(agent.network, agent.credit, config.credit, config.reward.scale)
    return None
