"""Exact credit, by dynamic programming: what the credit of methods is compared with.

A small task is taken apart into its hidden states. Under a given policy, every state then has a
value and every action an advantage, in plain numpy, and episodes are played by looking them up.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.credit.data.episode import Episode
from synthetic_returns.envs.base import Environment
from synthetic_returns.types import StepType

__all__ = ["ExactCredit", "PlayedEpisode", "StateGraph", "Truth", "state_graph"]

MOST_STATES = 100_000


@dataclasses.dataclass(frozen=True, eq=False)
class Truth:
    """The truth about S situations of a task under a policy, undiscounted.

    Attributes:
      policy: the probability of each action in each, ``[S, A]``.
      value: the expected return from each on.
      advantage: what each action adds to it, ``[S, A]``.
      starts: the situations in which episodes begin, one as often as another.
    """

    policy: np.ndarray
    value: np.ndarray
    advantage: np.ndarray
    starts: np.ndarray

    @property
    def expected_return(self) -> float:
        """Of an episode."""
        return float(self.value[self.starts].mean())


@dataclasses.dataclass(frozen=True, eq=False)
class StateGraph:
    """All hidden states of a task in which nothing is random but the policy; the first is number 0.

    Attributes:
      observation: what each of the S states looks like.
      after: the state that each action leads to, ``[S, A]``.
      reward: of each action there.
      discount: after it.
      last: whether it ends the episode.
      over: states in which an episode has ended.
      max_steps: of an episode.
    """

    observation: np.ndarray
    after: np.ndarray
    reward: np.ndarray
    discount: np.ndarray
    last: np.ndarray
    over: np.ndarray
    max_steps: int

    @property
    def time(self) -> np.ndarray:
        """The step of an episode on which each state is there, ``[S]``."""
        time = np.full(len(self.over), -1)
        time[0] = 0
        for state in np.flatnonzero(~self.over):  # numbered in the order in which they are reached
            for after in self.after[state]:
                if time[after] not in (-1, time[state] + 1):
                    raise ValueError(
                        f"state {after} is there on step {time[after]} and on {time[state] + 1}; "
                        "an agent that is told the time acts differently in both: use a task whose "
                        "states count the steps."
                    )
                time[after] = time[state] + 1
        return time

    def solve(self, policy: np.ndarray) -> "ExactCredit":
        """The values and advantages under a policy.

        Args:
          policy: the probability of each action in each state, ``[S, A]``.
        """
        policy = np.asarray(policy, np.float64)
        if policy.shape != self.reward.shape or not np.allclose(policy.sum(axis=1), 1):
            raise ValueError(
                f"the policy has shape {policy.shape} and rows that sum to "
                f"{policy.sum(axis=-1).min():g} to {policy.sum(axis=-1).max():g}; give the "
                f"probabilities of {self.reward.shape[1]} actions in each of "
                f"{len(self.reward)} states, which sum to 1."
            )
        value = np.zeros(len(self.over))
        q = np.zeros_like(policy)
        for _ in range(self.max_steps):
            q = np.where(self.over[:, None], 0, self.reward + ~self.last * value[self.after])
            value = (policy * q).sum(axis=1)
        return ExactCredit(policy, value, q - value[:, None], np.array([0]), self)


@dataclasses.dataclass(frozen=True, eq=False)
class PlayedEpisode:
    """An episode, and the hidden states that were left in it."""

    episode: Episode
    states: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class ExactCredit(Truth):
    """The truth about a task in which nothing is random but the policy.

    There, the advantage of the action taken is also the contribution of the step: by how much it
    changed the return that was to be expected.

    Attributes:
      graph: the states of the task.
    """

    graph: StateGraph

    def play(self, number: int, seed: int = 0) -> list[PlayedEpisode]:
        """Episodes of the policy."""
        rng, graph = np.random.default_rng(seed), self.graph
        played = []
        for _ in range(number):
            states, actions = [0], []
            while not graph.over[states[-1]]:
                here = states[-1]
                actions.append(rng.choice(self.policy.shape[1], p=self.policy[here]))
                states.append(graph.after[here, actions[-1]])
            left, action = np.array(states[:-1]), np.array(actions, np.int32)
            with np.errstate(divide="ignore"):
                log_probs = np.log(self.policy[left])
            episode = Episode(
                observation=graph.observation[states],
                reward=graph.reward[left, action].astype(np.float32),
                discount=graph.discount[left, action].astype(np.float32),
                action=action,
                log_probs=log_probs.astype(np.float32),
                value=self.value[left].astype(np.float32),
            )
            played.append(PlayedEpisode(episode, left))
        return played


def state_graph(env: Environment[Any], most: int = MOST_STATES) -> StateGraph:
    """Takes a task apart into its hidden states, by trying every action in each of them.

    Args:
      env: a task in which nothing is random.
      most: states at most.
    """
    state, first = env.reset(jax.random.key(0))
    _refuse_keys(env, state)
    actions = jnp.arange(env.num_actions, dtype=jnp.int32)
    step = jax.jit(jax.vmap(jax.vmap(env.step, in_axes=(None, 0)), in_axes=(0, None)))
    numbers = {_identity(state, over=False): 0}
    observations, over = [np.asarray(first.observation)], [False]
    rows: dict[int, tuple[Any, ...]] = {}
    frontier = {0: jax.tree.map(np.asarray, state)}
    while frontier:
        stacked = jax.tree.map(lambda *x: jnp.stack(x), *frontier.values())
        reached, timestep = jax.tree.map(np.asarray, step(stacked, actions))
        left, frontier = list(frontier), {}
        last = timestep.step_type == StepType.LAST
        after = np.zeros(last.shape, np.int64)
        for i, a in np.ndindex(*last.shape):
            one = jax.tree.map(lambda x, i=i, a=a: x[i, a], reached)
            name = _identity(one, over=bool(last[i, a]))
            if name not in numbers:
                numbers[name] = len(numbers)
                observations.append(timestep.observation[i, a])
                over.append(bool(last[i, a]))
                if not last[i, a]:
                    frontier[numbers[name]] = one
            after[i, a] = numbers[name]
        columns = (after, timestep.reward, timestep.discount, last)
        rows |= dict(zip(left, zip(*columns, strict=True), strict=True))
        if len(numbers) > most:
            raise ValueError(
                f"{type(env).__name__} has more than {most} states; exact credit is for small "
                "tasks: make it smaller by its parameters."
            )
    # Where an episode has ended, actions do nothing.
    nothing = tuple(np.zeros_like(column) for column in rows[0])
    every = [rows.get(number, nothing) for number in range(len(numbers))]
    after, reward, discount, last = (np.stack(column) for column in zip(*every, strict=True))
    return StateGraph(
        observation=np.stack(observations),
        after=after,
        reward=reward.astype(np.float64),
        discount=discount.astype(np.float64),
        last=last,
        over=np.array(over),
        max_steps=env.max_episode_steps,
    )


def _identity(state: Any, *, over: bool) -> bytes:
    leaves = (np.asarray(x).tobytes() for x in jax.tree.leaves(state))
    return b"|".join(leaves) + bytes([over])


def _refuse_keys(env: Environment[Any], state: Any) -> None:
    keys = [
        x
        for x in jax.tree.leaves(state)
        if eqx.is_array(x) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    ]
    if keys:
        raise ValueError(
            f"{type(env).__name__} draws random numbers while it runs; exact credit is for tasks "
            "in which nothing is random, such as Chain."
        )
