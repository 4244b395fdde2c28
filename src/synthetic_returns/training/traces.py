"""Traces: example episodes with what the credit method says about every step of them.

At evenly spaced points of training, two episodes are written into a run: the best of eight that
the agent plays (``traces/<step>.npz``) and one of the scripted policy
(``traces/<step>-scripted.npz``), which passes the decisive states even while the agent does not
find them yet. Nothing random is shared with training: recording changes no result.
"""

import dataclasses
import json
import re
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
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.model import Credit, Played, explain
from synthetic_returns.envs.base import Environment, VectorEnvironment
from synthetic_returns.envs.spec import TaskSpec
from synthetic_returns.types import Key, TimeStep, Trajectory
from synthetic_returns.utils.archives import read_arrays
from synthetic_returns.utils.files import RunError
from synthetic_returns.utils.settings import from_plain

__all__ = ["Trace", "TraceRecorder", "drift", "read_traces", "trace_points"]

SEED_OFFSET = 20_000  # apart from the seeds of training and of evaluation
EPISODES = 8  # that the agent plays for one trace

AGENT = ""
SCRIPTED = "-scripted"
_STEP = re.compile("0|[1-9][0-9]{0,17}")


@dataclasses.dataclass(frozen=True)
class Trace:
    """One episode of n steps: n + 1 states, from FIRST to LAST.

    Attributes:
      step: environment steps of training before it.
      observation: what the agent saw.
      reward: the reward of arriving in each state.
      explanation: what the credit method said about each state, in numpy arrays; what is about
        leaving the last one is NaN.
      events: what happened in each step, by name.
    """

    step: int
    observation: np.ndarray
    reward: np.ndarray
    explanation: Explanation
    events: dict[str, np.ndarray]

    def save(self, path: Path) -> None:
        """Writes one ``.npz`` file."""
        terms = self.explanation.terms
        arrays = {"step": self.step, "observation": self.observation, "reward": self.reward}
        arrays |= {f"events/{name}": x for name, x in self.events.items()}
        arrays |= {f"terms/{name}": term.values for name, term in terms.items()}
        header = {
            "credit": self.explanation.credit,
            "terms": [{"name": name} | _words(term) for name, term in terms.items()],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, allow_pickle=False, header=json.dumps(header), **arrays)

    @classmethod
    def load(cls, path: Path) -> "Trace":
        """Reads what ``save`` wrote."""
        remedy = "delete the file; only this picture of training is lost"
        arrays = read_arrays(path, remedy)
        try:
            return cls._of_arrays(arrays)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise RunError(f"{path} is not a trace ({error!r}): {remedy}") from error

    @classmethod
    def _of_arrays(cls, arrays: dict[str, np.ndarray]) -> "Trace":
        trace = cls(
            step=int(arrays["step"]),
            observation=arrays["observation"],
            reward=arrays["reward"],
            explanation=_read_explanation(arrays),
            events={
                name.removeprefix("events/"): x
                for name, x in arrays.items()
                if name.startswith("events/")
            },
        )
        _check_states(trace)
        return trace


def _check_states(trace: Trace) -> None:
    """Refuses arrays that are not numbers, or not one entry for each state."""
    states = trace.reward.shape
    terms = trace.explanation.terms
    entries = {"observation": trace.observation, "reward": trace.reward, **trace.events}
    for name, x in (*entries.items(), *((name, term.values) for name, term in terms.items())):
        if x.dtype.kind not in "biuf" or len(states) != 1 or x.shape[:1] != states or not x.size:
            raise ValueError(f"{name} is {x.dtype}{list(x.shape)}, the reward {list(states)}")
    for name, term in terms.items():
        rank = {"line": 1, "gate": 1, "pairs": 2, "actions": 2}[term.kind]
        if term.values.ndim != rank or term.values.dtype.kind != "f":
            raise ValueError(f"{name} is a {term.kind} of shape {list(term.values.shape)}")
    if any(x.ndim != 1 for x in trace.events.values()):
        raise ValueError("an event has more than one number for each state")


def _words(term: Term) -> dict[str, Any]:
    """Everything of a term but its values."""
    return {name: value for name, value in vars(term).items() if name != "values"}


def _read_explanation(arrays: dict[str, np.ndarray]) -> Explanation:
    if "header" not in arrays:
        return _read_old_explanation(arrays)
    header = json.loads(str(arrays["header"]))
    terms = {
        words["name"]: from_plain(Term, words | {"values": arrays[f"terms/{words['name']}"]})
        for words in header["terms"]
    }
    return Explanation(terms, header["credit"])


def _read_old_explanation(arrays: dict[str, np.ndarray]) -> Explanation:
    """Of version 0.1, which wrote bare arrays: the credit first, and NaN without any."""
    known = {
        name: x
        for name, x in arrays.items()
        if name not in ("step", "observation", "reward")
        and not name.startswith("events/")
        and not np.isnan(x).all()
    }
    terms = {
        name: Term(x, name, "line", "leaving" if np.isnan(x[-1]) else "arriving")
        for name, x in known.items()
    }
    return Explanation(terms, next(iter(terms), None))


def trace_points(steps: int, traces: int) -> list[int]:
    """The steps of training after which traces are recorded; the last one is the end."""
    return [steps * number // traces for number in range(1, traces + 1)]


def read_traces(
    run: str | Path, *, scripted: bool = False, newest: int | None = None
) -> list[Trace]:
    """The traces of a run, in the order of training.

    Args:
      run: the run directory.
      scripted: of the scripted policy instead of the agent.
      newest: so many of them only, the last ones; all unless given.
    """
    suffix = SCRIPTED if scripted else AGENT
    found = Path(run, "traces").glob("*.npz")
    steps = sorted(int(path.stem) for path in found if _STEP.fullmatch(path.stem))
    paths = [Path(run, "traces", f"{step}{suffix}.npz") for step in steps]
    existing = [path for path in paths if path.exists()]
    chosen = existing if newest is None else existing[-newest:]
    return [Trace.load(path) for path in chosen]


def drift(before: Trace, after: Trace) -> float:
    """How much the credit changed between two traces of the same states, relative to its size.

    Both are root mean squares; NaN if the states differ or there is no credit or it is zero.
    """
    explained = (before.explanation, after.explanation)
    if any(explanation.credit is None for explanation in explained):
        return float("nan")
    if not np.array_equal(before.observation, after.observation):
        return float("nan")
    old, new = (np.asarray(explanation.paid, np.float64) for explanation in explained)
    size, change = (float(np.sqrt(np.nanmean(np.square(x)))) for x in (new, new - old))
    return change / size if size > 1e-12 else float("nan")


class TraceRecorder:
    """Plays and explains the example episodes of one task."""

    def __init__(self, task: TaskSpec):
        """Compiles nothing yet; the first recording does."""
        self._task = task
        self._record = eqx.filter_jit(self._play_and_explain)
        self._explain = eqx.filter_jit(explain)

    def record(self, run: Path, step: int, seed: int, agent: Agent, credit: Credit | None) -> None:
        """Writes the traces of this moment into a run directory.

        Args:
          run: the run directory.
          step: environment steps of training so far.
          seed: the seed of the run; all its traces start from the same states.
          agent: plays.
          credit: explains, if there is any.
        """
        key = jax.random.key(SEED_OFFSET + seed)
        record = self._record if isinstance(self._task, Environment) else self._record_on_host
        for suffix, episode in record(agent, credit, key).items():
            _cut(step, *episode).save(run / "traces" / f"{step}{suffix}.npz")

    def _record_on_host(self, agent: Agent, credit: Credit | None, key: Key):
        """The same for environments that cannot be compiled; nobody has scripted these."""
        played = _best(play_episodes(self._task, agent.network, EPISODES, key))
        return {AGENT: (played.timestep, self._explain(credit, played))}

    def _play_and_explain(self, agent: Agent, credit: Credit | None, key: Key):
        """The longest possible episode of each player, with its explanation."""
        env: Any = self._task
        explained = _play(env, agent, key)
        episodes = {AGENT: (explained.timestep, explain(credit, explained))}
        if env.has_script:
            timestep, action = _play_script(env, key)
            explanation = Explanation()
            if credit:
                log_pi, value = _opinion(agent, timestep)
                explanation = credit.explain(Played(timestep, action, log_pi, value))
            episodes[SCRIPTED] = (timestep, explanation)
        return episodes


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


def _play(env: Environment, agent: Agent, key: Key) -> Trajectory:
    """The best of a few episodes: one in which nothing happens would show nothing."""
    vector = VectorEnvironment(env, contributions=env.has_contributions)
    start = actor.start(vector, agent.network, EPISODES, key)
    _, trajectory = actor.unroll(vector, agent.network, start, env.max_episode_steps)
    return _best(trajectory)


def _best(played: Trajectory) -> Trajectory:
    """The column whose first episode has the largest return."""
    timestep = played.timestep
    ended = jnp.cumsum(timestep.last, axis=0) > 0
    reward = jnp.where(ended & ~timestep.last, 0, timestep.reward)  # of the first episode
    best = jnp.argmax(jnp.sum(reward, axis=0))
    columns = dataclasses.replace(played, core=None)
    return jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, best, 1, axis=1), columns)


def _play_script(env: Environment, key: Key) -> tuple[TimeStep, Int[Array, "time 1"]]:
    vector = VectorEnvironment(env, contributions=env.has_contributions)
    state, first = vector.reset(key[None])

    def step(state, _):
        action = jax.vmap(env.optimal_action)(state.inner)
        state, timestep = vector.step(state, action)
        return state, (timestep, action)

    _, (later, action) = jax.lax.scan(step, state, length=env.max_episode_steps)
    timestep = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, later)
    return timestep, action


def _cut(step: int, timestep: TimeStep, explanation: Explanation) -> Trace:
    """The first episode of what was played."""
    last = int(np.flatnonzero(np.asarray(timestep.last)[:, 0])[0])
    steps = slice(0, last + 1)
    return Trace(
        step=step,
        observation=np.asarray(timestep.observation)[steps, 0],
        reward=np.asarray(timestep.reward)[steps, 0],
        explanation=explanation.episode(0).cut(last + 1),
        events={name: np.asarray(x)[steps, 0] for name, x in timestep.events.items()},
    )
