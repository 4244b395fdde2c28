"""Which methods a wrapper can use, and what it says about the others."""

import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import synthetic_returns as sr
from synthetic_returns.wrappers.stream import StreamCredit
from synthetic_returns.wrappers.vector import SyntheticReturnsVectorWrapper
from tests.wrappers.planned import Known, PlannedEnv
from tests.wrappers.small import METHOD


class InHindsight(Known):
    name = "in-hindsight"
    needs: ClassVar[frozenset[sr.Need]] = frozenset({sr.Need.WHOLE_EPISODES})


class Advantages(Known):
    name = "advantages"
    gives: ClassVar[sr.Gives] = sr.Gives.ADVANTAGE


class OfThePolicy(Known):
    name = "of-the-policy"
    needs: ClassVar[frozenset[sr.Need]] = frozenset({sr.Need.LOG_PROBS, sr.Need.VALUES})


class OfActions(Known):
    name = "of-actions"
    needs: ClassVar[frozenset[sr.Need]] = frozenset({sr.Need.ACTIONS})


def credit(method, action_space: spaces.Space = spaces.Discrete(5)):  # noqa: B008
    space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    return StreamCredit(space, action_space, 2, method=method, max_episode_steps=5)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (InHindsight(), r"'in-hindsight' needs complete episodes; a wrapper has to pay at every"),
        (Advantages(), r"'advantages' gives an advantage for each action; .*rewards only: choose"),
        (OfThePolicy(), r"'of-the-policy' needs the agent's probabilities and values, which are"),
        ("paper", r"'paper' is trained with the agent, which a wrapper does not see: choose one"),
        ("none", r"'none' gives nothing; .*choose a method that gives rewards"),
    ],
)
def test_what_it_cannot_use(method, message):
    with pytest.raises(ValueError, match=message):
        credit(method)


def test_actions_have_to_be_numbered():
    assert "action" in credit(OfActions()).driver.buffer.arrays
    for space in (spaces.Box(-1, 1, (2,)), spaces.Discrete(3, start=1), spaces.Text(5)):
        with pytest.raises(ValueError, match="'of-actions' needs actions that are numbered"):
            credit(OfActions(), space)


class Totals(eqx.Module):
    steps: Any
    returns: Any
    also: Any


@dataclasses.dataclass(frozen=True)
class Running(sr.CreditMethod):
    """Carries the time along each episode; names parts of its state as metrics, twice."""

    name: ClassVar[str] = "running"
    summary: ClassVar[str] = "the time, and the mean of all rewards"
    replay: sr.Replay = dataclasses.field(default=sr.Replay(slots=4, updates_per_episode=0.5))

    def init(self, spec, key):
        zero = jnp.zeros(())
        return Totals(zero, zero, np.zeros((), np.float32))

    def learn(self, state, episodes, key):
        steps = state.steps + jnp.sum(episodes.length).astype(jnp.float32)
        returns = state.returns + jnp.sum(episodes.reward)
        return Totals(steps, returns, steps), {"steps": steps, "returns": returns}

    def start(self, state, num_envs):
        return jnp.zeros(num_envs)

    def assign(self, state, carry, segment):
        def step(before, inputs):
            first, last = inputs
            here = jnp.where(first, 0, before)
            after = jnp.where(last, here, here + 1)
            return after, after

        first, last = jnp.asarray(segment.first), jnp.asarray(segment.last)
        carry, time = jax.lax.scan(step, carry, (first[:-1], last[:-1]))
        return sr.Assignment(reward=time), carry

    def explain(self, state, episodes):
        time = jnp.arange(episodes.observation.shape[0], dtype=jnp.float32)[:, None]
        values = jnp.broadcast_to(time, episodes.observation.shape[:2])
        return sr.Explanation({"time": sr.Term(values, "time")}, "time")


def wrap(method):
    env = gymnasium.vector.SyncVectorEnv(
        [lambda: PlannedEnv(0, [(3, False), (5, True)]), lambda: PlannedEnv(1, [(4, False)])]
    )
    return SyntheticReturnsVectorWrapper(env, method=method, max_episode_steps=5, learn_every=1)


def test_what_is_carried_along_an_episode():
    env = wrap(Running())
    env.reset()
    paid = [env.step(np.zeros(2, int))[4]["synthetic_return"] for _ in range(10)]
    # 3 steps, the start of the next episode, 5 steps, ...; an end earns nothing.
    np.testing.assert_array_equal(np.array(paid)[:, 0], [1, 2, 0, 0, 1, 2, 3, 4, 0, 0])
    np.testing.assert_array_equal(np.array(paid)[:, 1], [1, 2, 3, 0, 0, 1, 2, 3, 0, 0])
    np.testing.assert_array_equal(env.explain(env.recent_episodes()[0]).paid, [0, 1, 2, 0])


def test_metrics_outlive_the_state_that_they_were_taken_from():
    """An update is made in place of the state before; what it reported can still be read."""
    env = wrap(Running())
    env.reset()
    steps = 0.0
    for _ in range(40):
        env.step(np.zeros(2, int))
        steps = env.report().get("steps", 0.0)
    assert steps > 0


@pytest.mark.parametrize("method", [METHOD, Running()])
def test_learning_without_the_wrapper_leaves_it_working(method):
    """Updates are made in place: the wrapper must not go on with what they replaced."""
    env = wrap(method)
    env.reset()
    for _ in range(10):
        env.step(np.zeros(2, int))
    episode, updates = env.recent_episodes()[0], env.credit.driver.updates
    for _ in range(3):
        env.credit.driver.learn([episode] * 3)
        _, augmented, _, _, _ = env.step(np.zeros(2, int))
        assert np.all(np.isfinite(augmented))
    assert env.credit.driver.updates > updates
    assert env.explain(episode).paid.shape == (4,)
    assert np.isfinite(env.report()["true_return"])
