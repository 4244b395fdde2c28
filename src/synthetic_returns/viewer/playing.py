"""Plays whole episodes with the agent of a run and explains every step of them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from synthetic_returns.acting import actor
from synthetic_returns.acting.host_actor import play_episodes
from synthetic_returns.agents.agent import Agent
from synthetic_returns.credit.explainer import Explainer, explain
from synthetic_returns.credit.explanation import Explanation
from synthetic_returns.credit.reference import reference_credit
from synthetic_returns.envs.base import Environment, VectorEnvironment, VectorState
from synthetic_returns.envs.spec import TaskSpec
from synthetic_returns.nn.exploring import ExploringNetwork
from synthetic_returns.nn.networks import Network
from synthetic_returns.types import Key, TimeStep
from synthetic_returns.utils.checks import check_positive
from synthetic_returns.viewer.frames import frames_of_observations
from synthetic_returns.viewer.recording import Recording
from synthetic_returns.viewer.state_bars import place_in_bars

__all__ = ["play", "record"]

SEED_OFFSET = 30_000  # apart from the seeds of training, of evaluation and of traces


@dataclasses.dataclass(frozen=True)
class Played:
    """Episodes side by side, each from its FIRST step to, at most, the longest episode's end.

    Attributes:
      timestep: ``[T, B]``; what lies behind the first LAST of a column is another episode.
      explanation: what the credit method says about it.
      states: the hidden states of the task, ``[T, B]``; None if they are not known.
    """

    timestep: TimeStep
    explanation: Explanation
    states: Any

    @property
    def lengths(self) -> np.ndarray:
        """States of each episode, the last one included."""
        return np.argmax(np.asarray(self.timestep.last), axis=0) + 1

    def credit(self) -> np.ndarray:
        """The credit of the states of all episodes, one number for each."""
        columns = range(self.timestep.reward.shape[1])
        of_episodes = [self.explanation.episode(column).per_state() for column in columns]
        return np.stack([x for x in of_episodes if x is not None], axis=1)

    def returns(self) -> np.ndarray:
        """The return of each episode."""
        ended = np.arange(len(self.timestep.reward))[:, None] >= self.lengths
        return np.where(ended, 0, np.asarray(self.timestep.reward)).sum(axis=0)

    def reference(self) -> np.ndarray | None:
        """The mean credit of each step; see ``reference_credit``."""
        mean = reference_credit(self.explanation, self.timestep.last)
        return None if mean is None else np.asarray(mean)

    def columns(self, columns: Sequence[int]) -> "Played":
        """Some of the episodes."""
        chosen = jnp.asarray(columns, jnp.int32)
        return Played(*jax.tree.map(lambda x: x[:, chosen], tuple(vars(self).values())))

    def beside(self, other: "Played") -> "Played":
        """These episodes and others of the same task."""
        mine, others = (tuple(vars(x).values()) for x in (self, other))
        return Played(*jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), mine, others))


def play(
    task: TaskSpec,
    agent: Agent,
    explainer: Explainer | None,
    episodes: int,
    *,
    seed: int = 0,
    greedy: bool = False,
    epsilon: float | Sequence[float] = 0.0,
) -> Played:
    """Plays one episode in each of as many environments.

    Args:
      task: what to play.
      agent: plays.
      explainer: explains what it plays; None for an agent without.
      episodes: how many.
      seed: of everything random.
      greedy: whether the agent takes the most probable action instead of sampling.
      epsilon: the share of random actions, of all episodes or of each; 1 is random play.
    """
    check_positive("episodes", episodes)
    key = jax.random.key(SEED_OFFSET + seed)
    shares = jnp.broadcast_to(jnp.asarray(epsilon, jnp.float32), episodes)
    network = ExploringNetwork(agent.network, shares, greedy=greedy)
    if not isinstance(task, Environment):
        return _play_on_host(task, network, explainer, episodes, key)
    return Played(*_play(task, network, explainer, episodes, key))


@eqx.filter_jit
def _play(
    task: Environment, network: Network, explainer: Explainer | None, episodes: int, key: Key
) -> tuple[Any, ...]:
    """Compiled once for all runs of a task; reports play many that differ by their seed alone."""
    vector = VectorEnvironment(task, contributions=task.has_contributions)
    start = actor.start(vector, network, episodes, key)
    _, trajectory = actor.unroll(vector, network, start, task.max_episode_steps)

    def step(state: VectorState, action: Int[Array, "batch"]):
        state, _ = vector.step(state, action)
        return state, state.inner

    # The unroll keeps what the agent saw; the same actions lead through the same states.
    _, later = jax.lax.scan(step, start.env, trajectory.action)
    states = jax.tree.map(
        lambda first, rest: jnp.concatenate([first[None], rest]), start.env.inner, later
    )
    return trajectory.timestep, explain(explainer, trajectory), states


_explain_one = eqx.filter_jit(explain)


def _play_on_host(
    task: TaskSpec, network: Network, explainer: Explainer | None, episodes: int, key: Key
) -> Played:
    """Episodes of environments that cannot be compiled, explained one by one: they are large."""
    trajectory = play_episodes(task, network, episodes, key)
    explanations = [
        _explain_one(explainer, jax.tree.map(lambda x, c=column: x[:, c : c + 1], trajectory))
        for column in range(episodes)
    ]
    explanation = jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), *explanations)
    return Played(trajectory.timestep, explanation, states=None)


def record(
    task: TaskSpec,
    played: Played,
    *,
    reference: np.ndarray | None = None,
    players: Sequence[str] = (),
) -> list[Recording]:
    """The played episodes with their pictures, the best first.

    Args:
      task: what was played.
      played: the episodes.
      reference: what their credit is compared with; see ``Recording``.
      players: who played each of them.
    """
    states = jax.tree.map(_to_host, played.states)
    names = players or [""] * len(played.lengths)
    recordings = [
        dataclasses.replace(_record(task, played, states, row, reference), player=name)
        for row, name in enumerate(names)
    ]
    return sorted(recordings, key=lambda recording: -recording.total)


def _record(
    task: TaskSpec, played: Played, states: Any, row: int, reference: np.ndarray | None
) -> Recording:
    timestep, states_of_it = played.timestep, int(played.lengths[row])
    explanation = played.explanation.episode(row).cut(states_of_it)

    def cut(x: Any) -> np.ndarray:
        return np.asarray(x)[:states_of_it, row]

    return Recording(
        reward=cut(timestep.reward),
        terms=explanation.terms,
        credit=explanation.credit,
        frames=_frames(task, states, row, cut(timestep.observation)),
        events={name: cut(x) for name, x in timestep.events.items()},
        event_marks=task.event_marks,
        phases=task.phases,
        place=place_in_bars(task, cut(timestep.observation)),
        reference=None if reference is None else reference[:states_of_it],
        truth=None if timestep.contribution is None else cut(timestep.contribution),
    )


def _frames(task: Any, states: Any, row: int, observation: np.ndarray) -> np.ndarray | None:
    """Pictures of an episode: of the hidden states, or of what the agent saw."""
    if states is None:
        return frames_of_observations(observation)
    return np.stack(
        [
            task.render(jax.tree.map(lambda x, t=t: jnp.asarray(x[t, row]), states))
            for t in range(len(observation))
        ]
    )


def _to_host(x: jax.Array) -> Any:
    """For quick slicing; random keys stay what they are, numpy does not know them."""
    return x if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else np.asarray(x)
