"""Methods of every kind that there is, for the laws: small, and right by construction."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.method import Assignment, CreditMethod, Gives, Need

__all__ = ["CONSERVING", "REPLAY", "Linear", "Novelty", "Taken", "Uniform"]

REPLAY = Replay(slots=16, batch_size=4, updates_per_episode=0.5)


def flat(x: Any) -> Any:
    """States as vectors."""
    return jnp.reshape(jnp.asarray(x), (*x.shape[:2], -1))


@dataclasses.dataclass(frozen=True)
class Linear(CreditMethod):
    """The return as a sum over states; what is linear in the state, at once."""

    name: ClassVar[str] = "test-linear"
    summary: ClassVar[str] = "least squares"
    replay: Replay = dataclasses.field(default=REPLAY)

    def init(self, spec, key):
        return jnp.zeros(int(np.prod(spec.observation_shape)))

    def learn(self, state, episodes, key):
        states = jnp.where(episodes.valid[..., None], flat(episodes.source), 0)
        error = jnp.sum(states @ state, axis=0) - jnp.sum(episodes.reward, axis=0)
        gradient = jnp.einsum("b,tbd->d", error, states) / len(error)
        return state - 0.02 * gradient, {"error": jnp.mean(jnp.square(error))}

    def assign(self, state, carry, segment):
        return Assignment(reward=flat(segment.arrived) @ state), carry

    def explain(self, state, episodes):
        term = Term(flat(episodes.observation) @ state, "worth")
        return Explanation({"worth": term}, credit="worth")


@dataclasses.dataclass(frozen=True)
class Novelty(Linear):
    """Carries the sum of what an episode has shown: pays how much a state adds to its square."""

    name: ClassVar[str] = "test-novelty"

    def start(self, state, num_envs):
        return jnp.zeros((num_envs, len(state)))

    def assign(self, state, carry, segment):
        def step(total, inputs):
            states, first = inputs
            total = jnp.where(first[:, None], 0, total)
            new = total + states
            return new, (total, jnp.sum(jnp.square(new) - jnp.square(total), axis=1))

        states = flat(segment.observation)
        after, (before, added) = jax.lax.scan(step, carry, (states, jnp.asarray(segment.first)))
        del after
        return Assignment(reward=added[1:]), before[-1]


@dataclasses.dataclass(frozen=True)
class Uniform(Linear):
    """Every step of an episode earns the same share of its return, once that is known."""

    name: ClassVar[str] = "test-uniform"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.WHOLE_EPISODES})

    def assign(self, state, carry, segment):
        valid = jnp.asarray(segment.valid)
        steps = jnp.sum(valid, axis=0, dtype=jnp.float32)
        mean = jnp.sum(jnp.where(valid, segment.reward, 0), axis=0) / steps
        return Assignment(reward=jnp.where(valid, mean[None], 0)), carry


@dataclasses.dataclass(frozen=True)
class Taken(Linear):
    """An advantage for each action: the return for the one that was taken, nothing for others."""

    name: ClassVar[str] = "test-taken"
    needs: ClassVar[frozenset[Need]] = frozenset(
        {Need.WHOLE_EPISODES, Need.ACTIONS, Need.LOG_PROBS, Need.VALUES}
    )
    gives: ClassVar[Gives] = Gives.ADVANTAGE

    def assign(self, state, carry, segment):
        total = jnp.sum(jnp.where(segment.valid, segment.reward, 0), axis=0)
        taken = jax.nn.one_hot(segment.action, 2)
        return Assignment(advantage=taken * total[None, :, None]), carry


# --- credit as an advance: what is paid is taken back at the end, whatever it was ---


class LinearAdvance(Linear):
    name: ClassVar[str] = "test-linear-advance"
    conserves: ClassVar[bool] = True


class NoveltyAdvance(Novelty):
    name: ClassVar[str] = "test-novelty-advance"
    conserves: ClassVar[bool] = True


class UniformAdvance(Uniform):
    name: ClassVar[str] = "test-uniform-advance"
    conserves: ClassVar[bool] = True


class Fickle(Linear):
    """Pays a lot, for no reason, and changes its mind with every update."""

    name: ClassVar[str] = "test-fickle"
    conserves: ClassVar[bool] = True

    def init(self, spec, key):
        return jax.random.normal(key, (int(np.prod(spec.observation_shape)),))

    def learn(self, state, episodes, key):
        return 10 * jax.random.normal(key, state.shape), {}

    def assign(self, state, carry, segment):
        return Assignment(reward=30 * jnp.sin(10 + flat(segment.arrived) @ state)), carry


CONSERVING = (LinearAdvance, NoveltyAdvance, UniformAdvance, Fickle)
