"""Plays and explains the example episodes of a run; see ``traces``."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from synthetic_returns.acting import actor
from synthetic_returns.acting.host_actor import play_episodes
from synthetic_returns.agents.agent import Agent
from synthetic_returns.credit.explainer import Explainer, Rollout
from synthetic_returns.credit.explanation import Explanation
from synthetic_returns.credit.reference import reference_credit
from synthetic_returns.envs.base import Environment, VectorEnvironment
from synthetic_returns.envs.spec import TaskSpec
from synthetic_returns.nn.exploring import ExploringNetwork
from synthetic_returns.training.traces import SUFFIXES, Player, Trace
from synthetic_returns.types import Key, TimeStep
from synthetic_returns.utils.sharing import shared

__all__ = ["TraceRecorder"]

SEED_OFFSET = 20_000  # apart from the seeds of training and of evaluation
EPISODES = 8  # that the agent plays for one trace, and again while it explores
EPSILON = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)  # shares of random actions while it explores
RANDOM = 24  # episodes of random play that credit is compared with

# What random play earns at each step, and the episodes with their explanations.
_Recorded = tuple[Array | None, dict[Player, tuple[TimeStep, Explanation]]]


class TraceRecorder:
    """Plays and explains the example episodes of one task."""

    def __init__(self, task: TaskSpec):
        """Compiles nothing yet; the first recording does."""
        self._task = task

    def record(
        self, run: Path, step: int, seed: int, agent: Agent, explainer: Explainer | None
    ) -> None:
        """Writes the traces of this moment into a run directory.

        Args:
          run: the run directory.
          step: environment steps of training so far.
          seed: the seed of the run; all its traces start from the same states.
          agent: plays.
          explainer: explains its credit, if there is any.
        """
        key = jax.random.key(SEED_OFFSET + seed)
        task = self._task
        record = _compiled(task) if isinstance(task, Environment) else self._record_on_host
        reference, episodes = record(agent, explainer, key)
        for player, (timestep, explanation) in episodes.items():
            trace = _cut(step, timestep, explanation, reference)
            trace.save(run / "traces" / f"{step}{SUFFIXES[player]}.npz")

    def _record_on_host(self, agent: Agent, explainer: Explainer | None, key: Key) -> _Recorded:
        """The same for environments that cannot be compiled: slow, so only what is needed."""
        rollout = Rollout.of(play_episodes(self._task, agent.network, EPISODES, key))
        best = int(np.argmax(_returns(rollout.timestep)))
        played = _columns(rollout, best, best + 1)  # without a copy of all others
        return None, {"agent": (played.timestep, _explain_compiled(explainer, played))}


@shared
def _compiled(task: Environment) -> Callable[..., _Recorded]:
    return eqx.filter_jit(functools.partial(_play_and_explain, task))


def _play_and_explain(
    env: Environment, agent: Agent, explainer: Explainer | None, key: Key
) -> _Recorded:
    """The longest possible episode of each player, with its explanation."""
    played = _play(env, agent, key)
    own, exploring, random = (
        _columns(played, *part) for part in ((0, EPISODES), (EPISODES, -RANDOM), (-RANDOM, None))
    )
    shown = [_best(own), _middling(exploring)]
    players: list[Player] = ["agent", "exploring"]
    if env.has_script:
        shown.append(_play_script(env, agent, key))
        players.append("scripted")
    # Explained together, so that this is compiled once.
    beside = jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), *shown, random)
    explanation = _explain(explainer, beside)
    at_random = _columns(explanation, -RANDOM, None)
    reference = reference_credit(at_random, random.timestep.last)
    episodes: dict[Player, tuple[TimeStep, Explanation]] = {
        player: (one.timestep, _columns(explanation, column, column + 1))
        for column, (player, one) in enumerate(zip(players, shown, strict=True))
    }
    return reference, episodes


def _explain(explainer: Explainer | None, played: Rollout) -> Explanation:
    return explainer.explain(played) if explainer else Explanation()


_explain_compiled = eqx.filter_jit(_explain)


def _opinion(
    agent: Agent, timestep: TimeStep
) -> tuple[Float[Array, "time batch actions"], Float[Array, "time batch"]]:
    """What the agent would have done in the states of an episode, and what it would expect."""
    network = agent.network
    features = network.torso(timestep.observation)
    core = network.initial_state(timestep.reward.shape[1])
    hidden, _ = network.recur(features, timestep.first, core)
    logits, value = network.heads(hidden)
    return jax.nn.log_softmax(logits[:-1]), value[:-1]


def _play(env: Environment, agent: Agent, key: Key) -> Rollout:
    """Episodes of the agent, of the agent while it explores, and of random play, side by side."""
    vector = VectorEnvironment(env, contributions=env.has_contributions)
    epsilon = jnp.array([0.0] * EPISODES + [*EPSILON] + [1.0] * RANDOM)
    network = ExploringNetwork(agent.network, epsilon)
    start = actor.start(vector, network, len(epsilon), key)
    _, trajectory = actor.unroll(vector, network, start, env.max_episode_steps)
    return Rollout.of(trajectory)


def _columns(batch: Any, start: int, end: int | None) -> Any:
    """Some episodes of arrays ``[T, B, ...]``."""
    return jax.tree.map(lambda x: x[:, start:end], batch)


def _best(played: Rollout) -> Rollout:
    """The episode with the largest return: one in which nothing happens would show nothing."""
    return _column(played, jnp.argmax(_returns(played.timestep)))


def _middling(played: Rollout) -> Rollout:
    """The episode whose return is nearest to halfway between the smallest and the largest."""
    returns = _returns(played.timestep)
    halfway = (jnp.min(returns) + jnp.max(returns)) / 2
    return _column(played, jnp.argmin(jnp.abs(returns - halfway)))


def _returns(timestep: TimeStep) -> Float[Array, "batch"]:
    """Of the first episode of each column."""
    ended = jnp.cumsum(timestep.last, axis=0) > 0
    return jnp.sum(jnp.where(ended & ~timestep.last, 0, timestep.reward), axis=0)


def _column(played: Rollout, index: Int[Array, ""]) -> Rollout:
    return jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, index, 1, axis=1), played)


def _play_script(env: Environment, agent: Agent, key: Key) -> Rollout:
    """An episode of the scripted policy, with what the agent thinks of it."""
    vector = VectorEnvironment(env, contributions=env.has_contributions)
    state, first = vector.reset(key[None])

    def step(state, _):
        action = jax.vmap(env.optimal_action)(state.inner)
        state, timestep = vector.step(state, action)
        return state, (timestep, action)

    _, (later, action) = jax.lax.scan(step, state, length=env.max_episode_steps)
    timestep = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, later)
    log_probs, value = _opinion(agent, timestep)
    return Rollout(timestep, action, log_probs, value)


def _cut(step: int, timestep: TimeStep, explanation: Explanation, reference: Array | None) -> Trace:
    """The first episode of what was played."""
    last = int(np.flatnonzero(np.asarray(timestep.last)[:, 0])[0])
    steps = slice(0, last + 1)
    return Trace(
        step=step,
        observation=np.asarray(timestep.observation)[steps, 0],
        reward=np.asarray(timestep.reward)[steps, 0],
        explanation=explanation.episode(0).cut(last + 1),
        events={name: np.asarray(x)[steps, 0] for name, x in timestep.events.items()},
        reference=None if reference is None else np.asarray(reference)[steps],
        truth=None
        if timestep.contribution is None
        else np.asarray(timestep.contribution)[steps, 0],
    )
