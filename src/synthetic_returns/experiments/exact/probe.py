"""Trains an agent, and stops now and then to compare the credit that it gets with the exact one."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from synthetic_returns.acting import actor
from synthetic_returns.config import Config
from synthetic_returns.credit.data.segments import segment_of
from synthetic_returns.credit.explainer import AuxiliaryExplainer, Explainer, explain
from synthetic_returns.engines.engine import make_engine
from synthetic_returns.envs.base import Environment, VectorEnvironment
from synthetic_returns.experiments.exact.quality import Quality, quality
from synthetic_returns.experiments.exact.tasks import Policy, SmallTask
from synthetic_returns.experiments.exact.truth import Truth
from synthetic_returns.nn.networks import Network
from synthetic_returns.types import Key, Trajectory
from synthetic_returns.utils.sharing import shared
from synthetic_returns.utils.tables import Row

__all__ = ["BASELINE", "REFERENCE", "SHARES", "credited", "played", "probed"]

EPISODES = 500
BASELINE = "none"
REFERENCE = "return"  # not a method: the return to come, less what was to be expected exactly
SHARES = tuple(2.0**-k for k in range(6, -1, -1))  # of the budget, after which it is compared


def probed(task: SmallTask, method: str, policy: Policy, seed: int) -> list[Row]:
    """Trains one seed of a method; gives a row for each time that its credit was compared.

    With the baseline come the rows of the reference.

    Args:
      task: the task.
      method: its name.
      policy: whether the policy learns from the credit, or stays random.
      seed: of the run.
    """
    config = task.config(method, policy, seed)
    engine = make_engine(config, [seed])
    rows: list[Row] = []
    step = 0
    try:
        for number, share in enumerate(SHARES):
            while (until := round(task.steps * share) - step) > 0:
                updates = engine.step(-(-until // engine.steps_per_update))
                step += updates * engine.steps_per_update
            network = engine.agent(0).network
            key = jax.random.fold_in(jax.random.key(10_000 + seed), number)
            trajectory = played(config, network, key)
            truth, states = task.truth(network), task.states(trajectory)
            credit = {method: credited(config, engine.explainer(0), trajectory)}
            if method == BASELINE:
                credit[REFERENCE] = _unexpected(truth, states, trajectory)
            rows += [
                {"task": task.name, "policy": policy, "method": name, "seed": seed}
                | {"env_steps": step, "expected_return": truth.expected_return}
                | dataclasses.asdict(_compared(truth, states, trajectory, values))
                for name, values in credit.items()
            ]
    finally:
        engine.close()
    return rows


def credited(config: Config, explainer: Explainer | None, trajectory: Trajectory) -> np.ndarray:
    """What the agent learns from, of whole episodes that are equally long.

    Args:
      config: the settings.
      explainer: of the credit; None if there is none.
      trajectory: the episodes, ``[T + 1, B]``.

    Returns:
      What is paid for each transition ``[T, B]``, its own reward included; or advantages
      ``[T, B, A]``.
    """
    reward = trajectory.timestep.reward[1:]
    if explainer is None:
        return np.asarray(reward)
    if isinstance(explainer, AuxiliaryExplainer):
        credit: Any = jnp.asarray(explain(explainer, trajectory).paid)[1:]
    else:
        method = explainer.method
        segment = segment_of(trajectory, explainer.view)
        carry = (method.start(explainer.state, reward.shape[1]), jnp.zeros(reward.shape[1]))
        assignment, _ = method.pay(explainer.state, carry, segment, explainer.view.stride)
        if assignment.advantage is not None:
            return np.asarray(assignment.advantage)
        credit = assignment.reward
    return np.asarray(config.reward.augmented(reward, credit, trajectory.timestep.last[1:]))


def played(config: Config, network: Network, key: Key) -> Trajectory:
    """Whole episodes of an agent, side by side."""
    trajectory = _player(config.task, config.needs_contributions)(network, key)
    last = np.asarray(trajectory.timestep.last)
    if not last[-1].all() or last[:-1].any():
        raise ValueError(
            f"episodes of {config.task_name} end before their last step; exact credit is compared "
            "in episodes that are all equally long."
        )
    return trajectory


@shared
def _player(env: Environment, contributions: bool) -> Callable[[Network, Key], Trajectory]:
    many = VectorEnvironment(env, contributions=contributions)

    def play(network: Network, key: Key) -> Trajectory:
        start = actor.start(many, network, EPISODES, key)
        return actor.unroll(many, network, start, env.max_episode_steps)[1]

    return eqx.filter_jit(play)


def _unexpected(truth: Truth, states: np.ndarray, trajectory: Trajectory) -> np.ndarray:
    """The return to come from each step on, less what was to be expected there."""
    reward: Float[Array, "time batch"] = trajectory.timestep.reward[1:]
    return np.cumsum(np.asarray(reward)[::-1], axis=0)[::-1] - truth.value[states]


def _compared(
    truth: Truth, states: np.ndarray, trajectory: Trajectory, credit: np.ndarray
) -> Quality:
    """What everybody gets on a step of an episode changes no decision, and is taken off first."""
    usual = credit if credit.ndim == 2 else (truth.policy[states] * credit).sum(axis=-1)
    centred = credit - usual.mean(axis=1).reshape(-1, *[1] * (credit.ndim - 1))
    action = np.asarray(trajectory.action).ravel()
    return quality(truth, states.ravel(), action, centred.reshape(states.size, *credit.shape[2:]))
