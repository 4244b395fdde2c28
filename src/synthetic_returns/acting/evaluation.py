"""Evaluation: whole episodes of a trained agent, and their means with confidence intervals."""

import contextlib
import dataclasses
from collections.abc import Callable, Generator

import equinox as eqx
import jax
import numpy as np

from synthetic_returns.acting import actor
from synthetic_returns.acting.actor import ActorState
from synthetic_returns.acting.host_actor import UNROLL, HostActor
from synthetic_returns.envs.base import Environment, VectorEnvironment
from synthetic_returns.envs.spec import TaskSpec
from synthetic_returns.nn.networks import Network
from synthetic_returns.types import Key, TimeStep, Trajectory
from synthetic_returns.utils.checks import check_positive
from synthetic_returns.utils.sharing import shared
from synthetic_returns.utils.statistics import mean_interval

__all__ = ["Evaluation", "evaluate"]

MAX_ENVS = 100


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Sums over each evaluated episode, by name: episode_return, episode_steps and every event."""

    totals: dict[str, np.ndarray]

    @property
    def episodes(self) -> int:
        """How many."""
        return len(self.totals["episode_return"])

    def summary(self) -> dict[str, float | int]:
        """The mean return with a 95 % bootstrap interval, success, and the mean of every event."""
        returns = self.totals["episode_return"]
        low, high = mean_interval(returns)
        means = {name: float(np.mean(total)) for name, total in self.totals.items()}
        return {
            "episodes": self.episodes,
            "return_mean": means.pop("episode_return"),
            "return_low": float(low),
            "return_high": float(high),
        } | means


def evaluate(
    env: TaskSpec, network: Network, episodes: int, seed: int, *, greedy: bool = False
) -> Evaluation:
    """Plays whole episodes with the agent as it acts in training.

    Every environment plays equally many episodes, so that short ones are not favoured.
    """
    check_positive("episodes", episodes)
    num_envs = min(episodes, MAX_ENVS)
    per_env = -(-episodes // num_envs)
    key = jax.random.key(seed)
    if isinstance(env, Environment):
        steps = _jax_unrolls(env, network, num_envs, key, greedy)
    else:
        steps = _host_unrolls(env, network, num_envs, key, greedy)
    found: list[list[dict[str, float]]] = [[] for _ in range(num_envs)]
    running: list[dict[str, float]] = [{} for _ in range(num_envs)]
    with contextlib.closing(steps):
        while any(len(row) < per_env for row in found):
            _gather(next(steps), found, running)
    chosen = [episode for round_ in zip(*(row[:per_env] for row in found), strict=True)
              for episode in round_][:episodes]  # fmt: skip
    return Evaluation({name: np.array([e[name] for e in chosen]) for name in chosen[0]})


def _jax_unrolls(
    env: Environment, network: Network, num_envs: int, key: Key, greedy: bool
) -> Generator[TimeStep, None, None]:
    """Consecutive unrolls, each at least as long as an episode."""
    state = actor.start(VectorEnvironment(env), network, num_envs, key)
    unroll = _compiled(env, greedy)
    while True:
        state, trajectory = unroll(network, state)
        yield trajectory.timestep


@shared
def _compiled(env: Environment, greedy: bool) -> Callable[..., tuple[ActorState, Trajectory]]:
    """An unroll of a whole episode."""
    length = env.max_episode_steps + 1

    def unroll(network: Network, state: ActorState) -> tuple[ActorState, Trajectory]:
        return actor.unroll(VectorEnvironment(env), network, state, length, greedy=greedy)

    return eqx.filter_jit(unroll)


def _host_unrolls(
    task: TaskSpec, network: Network, num_envs: int, key: Key, greedy: bool
) -> Generator[TimeStep, None, None]:
    """Consecutive unrolls; short ones, because observations may be large."""
    player = HostActor(task, network, num_envs, key)
    with contextlib.closing(player):
        while True:
            yield player.unroll(network, UNROLL, greedy=greedy).timestep


def _gather(timestep: TimeStep, found: list, running: list) -> None:
    """Adds the steps of an unroll to the sums of the episodes they belong to."""
    first, last = np.asarray(timestep.first), np.asarray(timestep.last)
    sums = {"episode_return": timestep.reward, "episode_steps": ~timestep.first}
    sums |= timestep.events
    arrays = {name: np.asarray(x, np.float64) for name, x in sums.items()}
    # The last step of an unroll is the first of the next: it is counted there.
    for row in range(first.shape[1]):
        for t in range(first.shape[0] - 1):
            if first[t, row]:
                running[row] = dict.fromkeys(arrays, 0.0)
            for name, array in arrays.items():
                running[row][name] += array[t, row]
            if last[t, row]:
                found[row].append(running[row])
