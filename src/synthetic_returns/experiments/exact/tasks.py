"""The small tasks: what is exact about the agent that is being trained on them."""

import abc
import dataclasses
import functools
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.config import Config
from synthetic_returns.credit.registry import find_method
from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.watch_repair import BRANDS, REPAIR_COST, WatchRepair, WatchRepairState
from synthetic_returns.experiments.exact.truth import StateGraph, Truth, state_graph
from synthetic_returns.nn.clock import ClockState
from synthetic_returns.nn.networks import Network
from synthetic_returns.presets import preset
from synthetic_returns.types import Trajectory

__all__ = ["POLICIES", "Certain", "Policy", "SmallTask", "Watches", "policy_of"]

Policy = Literal["random", "learning"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
RANDOM = {"agent.entropy_cost": 10.0, "agent.entropy_decay": 0.0}  # nothing pays as well as chance


@dataclasses.dataclass(frozen=True)
class SmallTask(abc.ABC):
    """A task whose credit is known exactly. Its episodes are all equally long.

    Attributes:
      name: on the command line and in tables.
      title: in figures.
      env: the task.
      like: the registered task whose preset says how the agent is set.
      steps: environment steps of a run.
    """

    name: str
    title: str
    env: Environment[Any]
    like: str
    steps: int

    def config(self, method: str, policy: Policy, seed: int) -> Config:
        """How an agent is trained on it: that of the preset, with all rewards in full."""
        config = preset(self.like, seed=seed).changed({"reward.alpha": 1.0, "reward.beta": 1.0})
        config = config.changed(task_name=self.name, task=self.env, steps=self.steps)
        config = config.changed(credit=find_method(method)())
        return config.changed(RANDOM) if policy == "random" else config

    @abc.abstractmethod
    def truth(self, network: Network) -> Truth:
        """The exact credit under the policy of an agent."""

    @abc.abstractmethod
    def states(self, trajectory: Trajectory) -> np.ndarray:
        """The number of the hidden state of each step ``[T, B]`` of whole episodes."""


@dataclasses.dataclass(frozen=True)
class Certain(SmallTask):
    """A task in which nothing is random but the policy: all its states are enumerated."""

    @functools.cached_property
    def graph(self) -> StateGraph:
        """All hidden states."""
        return state_graph(self.env)

    def truth(self, network: Network) -> Truth:
        """By dynamic programming over all states."""
        return self.graph.solve(policy_of(network, self.graph.observation, self.graph.time))

    def states(self, trajectory: Trajectory) -> np.ndarray:
        """Where the actions lead to."""
        action = np.asarray(trajectory.action)
        states = np.zeros(action.shape, np.int64)
        for t in range(1, len(action)):
            states[t] = self.graph.after[states[t - 1], action[t - 1]]
        return states


@dataclasses.dataclass(frozen=True)
class Watches(SmallTask):
    """Watch repair: only the first action counts, and what it is worth in the mean is known.

    A situation is the step, the brand and whether the watch was repaired. What happens on the way
    is luck: no action contributes to it.
    """

    env: WatchRepair

    def truth(self, network: Network) -> Truth:
        """The value of a repair, less what is usual for the policy."""
        numbers = np.arange(self.env.max_episode_steps * BRANDS * 2)
        starts = 2 * np.arange(BRANDS)
        _, first = jax.vmap(self.env.reset)(jax.random.split(jax.random.key(0), 100 * BRANDS))
        brand = np.argmax(np.asarray(first.observation)[:, :BRANDS], axis=1)
        shown = np.asarray(first.observation)[
            [np.flatnonzero(brand == b)[0] for b in range(BRANDS)]
        ]
        policy = np.full((len(numbers), 2), 0.5)
        policy[starts] = policy_of(network, shown, np.zeros(BRANDS, np.int32))
        gain = np.array([self._gain(b) for b in range(BRANDS)])
        q = np.zeros_like(policy)
        q[starts, 1] = gain
        value = (policy * q).sum(axis=1)
        return Truth(policy, value, q - value[:, None], starts)

    def states(self, trajectory: Trajectory) -> np.ndarray:
        """Read from the observations, which show all of it."""
        seen = np.asarray(trajectory.timestep.observation)[:-1]
        brand, repaired = seen[..., :BRANDS].argmax(axis=-1), seen[..., BRANDS].astype(np.int64)
        return (np.arange(len(seen))[:, None] * BRANDS + brand) * 2 + repaired

    def _gain(self, brand: int) -> float:
        """What a repair earns in the mean, less what it costs."""
        repaired = WatchRepairState(
            time=jnp.int32(0),
            brand=jnp.int32(brand),
            repaired=jnp.bool_(True),
            happened=jnp.zeros(2, jnp.int32),
            key=jax.random.key(0),
        )
        return float(self.env.owed(repaired)) - float(REPAIR_COST[0, brand])


def policy_of(network: Network, observation: np.ndarray, time: np.ndarray) -> np.ndarray:
    """The probabilities of all actions ``[S, A]`` in S states.

    Args:
      network: of an agent that remembers nothing but the time.
      observation: what the states look like.
      time: the step of the episode on which each is there.
    """
    steps = jnp.asarray(time, jnp.int32)
    core = network.initial_state(len(time))
    if not (core is None or isinstance(core, ClockState)):
        raise ValueError(
            f"the agent's core is {type(network.core).__name__} and its policy depends on more "
            "than the state and the time; set agent.lstm_size to 0."
        )
    core = None if core is None else ClockState(steps)
    features = network.torso(jnp.asarray(observation))
    hidden, _ = network.recur(features[None], (steps == 0)[None], core)
    logits, _ = network.heads(hidden[0])
    return np.asarray(jax.nn.softmax(logits), np.float64)
