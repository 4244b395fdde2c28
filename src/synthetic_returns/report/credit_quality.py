"""How good the credit is, in one number for each task: a picture can flatter."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.agents.impala.learner import Agent
from synthetic_returns.config import Config
from synthetic_returns.credit.episodic.state import EpisodicState
from synthetic_returns.envs.catch import Catch
from synthetic_returns.envs.key_to_door import KeyToDoor
from synthetic_returns.envs.spec import TaskSpec
from synthetic_returns.viewer.playing import Played, play

__all__ = ["CreditQuality", "credit_quality", "peak_share", "separation"]

EPISODES = 100


@dataclasses.dataclass(frozen=True)
class CreditQuality:
    """One measure of where the credit goes.

    Attributes:
      question: what is measured.
      value: the answer; NaN if the episodes do not tell.
      required: what it should at least be.
      unit: "share" or "AUC".
      detail: what the number is made of.
    """

    question: str
    value: float
    required: float
    unit: str
    detail: str

    @property
    def holds(self) -> bool:
        """Whether the credit is as good as required; NaN never is."""
        return self.value >= self.required

    def shown(self, value: float) -> str:
        """A value in the unit of this measure."""
        if not np.isfinite(value):
            return "not known"
        return f"{value:.1%}" if self.unit == "share" else f"{self.unit} {value:.4f}"

    def __str__(self) -> str:
        value, required = self.shown(self.value), self.shown(self.required)
        verdict = "holds" if self.holds else "does NOT hold"
        return f"{self.question}: {value}, required {required}, {verdict} ({self.detail})"


def credit_quality(
    config: Config,
    agent: Agent,
    credit: EpisodicState | None,
    *,
    episodes: int = EPISODES,
    seed: int = 0,
) -> CreditQuality | None:
    """Plays episodes and measures their credit; None if nothing is defined for the task."""
    if not config.has_credit or not _is_measured(config.task):
        return None
    played = play(config, agent, credit, episodes, seed=seed)
    if isinstance(config.task, Catch):  # a good agent misses nothing, and misses are needed, too
        played = played.beside(play(config, _aimless(agent), credit, episodes, seed=seed))
    return _measure(config.task, played)


def _aimless(agent: Agent) -> Agent:
    """An agent to whom all actions are alike."""
    return eqx.tree_at(
        lambda a: a.network.policy_logits,
        agent,
        replace_fn=functools.partial(jax.tree.map, jnp.zeros_like),
    )


def peak_share(c: np.ndarray, happened: np.ndarray) -> float:
    """The share of episodes ``[T, B]`` whose largest credit c is on the step of an event.

    An episode in which the event does not happen counts as one where the credit went elsewhere.
    """
    at_peak = np.take_along_axis(happened > 0, np.argmax(c, axis=0)[None], axis=0)
    return float(np.mean(at_peak))


def separation(good: np.ndarray, bad: np.ndarray) -> float:
    """AUC: the chance that a good one has more credit; a tie counts half. NaN if one is empty."""
    if not len(good) or not len(bad):
        return float("nan")
    difference = good[:, None] - bad[None, :]
    return float(np.mean((difference > 0) + 0.5 * (difference == 0)))


@functools.singledispatch
def _is_measured(task: TaskSpec) -> bool:
    del task
    return False


@_is_measured.register
def _(task: KeyToDoor) -> bool:
    return "key" in task.event_names  # with two keys there is no single right one


@_is_measured.register
def _(task: Catch) -> bool:
    return task.delayed  # what pays at once needs no credit


@functools.singledispatch
def _measure(task: TaskSpec, played: Played) -> CreditQuality:
    raise NotImplementedError(f"{type(task).__name__} has no measure of credit.")


@_measure.register
def _(task: KeyToDoor, played: Played) -> CreditQuality:
    """The state arrived in earns credit, so the last move of phase one counts at ``key_steps``."""
    phase = slice(0, task.key_steps + 1)
    c = played.credit()[phase]
    key = np.asarray(played.timestep.events["key"])[phase]
    taken = key.max(axis=0) > 0
    of_these = peak_share(c[:, taken], key[:, taken]) if taken.any() else float("nan")
    return CreditQuality(
        question="the largest credit of phase one is on the step that takes the key",
        value=peak_share(c, key),
        required=0.95,
        unit="share",
        detail=f"{len(taken)} episodes, {taken.sum()} with the key; of those {of_these:.1%}",
    )


@_measure.register
def _(task: Catch, played: Played) -> CreditQuality:
    """Landings with a successor: the terminal state earns no credit by definition."""
    running = ~np.asarray(played.timestep.last)
    c = played.credit()
    events = played.timestep.events
    caught, missed = (c[(np.asarray(events[name]) > 0) & running] for name in ("catch", "miss"))
    signs = (
        f"sign right for {np.mean(caught > 0):.1%} and {np.mean(missed < 0):.1%}"
        if len(caught) and len(missed)
        else "both kinds are needed"
    )
    return CreditQuality(
        question="the credit tells caught from missed landings",
        value=separation(caught, missed),
        required=0.99,
        unit="AUC",
        detail=f"{len(caught)} caught, {len(missed)} missed in {c.shape[1]} episodes, "
        f"half of them played at random; {signs}",
    )
