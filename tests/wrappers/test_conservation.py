"""Conservation in the wrappers: an episode pays its true return, however the next one starts."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

import synthetic_returns as sr
from synthetic_returns.wrappers.vector import SyntheticReturnsVectorWrapper
from tests.wrappers.planned import Known, PlannedEnv

LONGEST = 6

PLANS = st.lists(
    st.lists(st.tuples(st.integers(1, LONGEST), st.booleans()), min_size=1, max_size=4),
    min_size=1,
    max_size=3,
)


class KnownAdvance(Known):
    name = "known-advance"
    conserves: ClassVar[bool] = True


class Fickle(KnownAdvance):
    """Pays by the state and by a number that every update draws anew."""

    name = "fickle"

    def init(self, spec, key) -> Any:
        return jnp.zeros(())

    def learn(self, state, episodes, key):
        return jax.random.normal(key), {}

    def assign(self, state, carry, segment):
        return sr.Assignment(reward=state * jnp.asarray(segment.arrived)[..., 2]), carry


METHODS = pytest.mark.parametrize("method", [KnownAdvance(), Fickle()], ids=lambda m: m.name)
RANDOM = settings(max_examples=10, deadline=None, derandomize=True)
ANY = given(
    plans=PLANS,
    steps=st.integers(1, 40),
    alpha=st.floats(-2, 2),
    again=st.none() | st.integers(0, 39),
)


def rows(plans) -> Any:
    return [lambda row=row, plan=plan: PlannedEnv(row, plan) for row, plan in enumerate(plans)]


def options(method, alpha) -> Any:
    return {"method": method, "alpha": alpha, "beta": 1.0, "max_episode_steps": LONGEST,
            "learn_every": 1}  # fmt: skip


class Ledger:
    """What was paid, and what was earned, since the start of each running episode."""

    def __init__(self, num_envs):
        self.paid, self.earned, self.size = (np.zeros(num_envs) for _ in range(3))
        self.complete = 0

    def add(self, paid, true, credit, ended):
        self.paid += paid
        self.earned += true
        self.size += np.abs(true) + np.abs(credit)
        np.testing.assert_array_less(
            np.abs(self.paid - self.earned)[ended], (1e-5 * (1 + self.size))[ended]
        )
        self.complete += ended.sum()
        self.forget(ended)

    def forget(self, rows=slice(None)):
        for total in (self.paid, self.earned, self.size):
            total[rows] = 0


@METHODS
@pytest.mark.parametrize("mode", AutoresetMode)
@RANDOM
@ANY
def test_gymnasium(method, mode, plans, steps, alpha, again):
    env = SyntheticReturnsVectorWrapper(
        SyncVectorEnv(rows(plans), autoreset_mode=mode), **options(method, alpha)
    )
    env.reset(seed=0)
    ledger, over = Ledger(len(plans)), np.zeros(len(plans), bool)
    for step in range(steps):
        if step == again:  # in the middle of everything
            env.reset()
            ledger.forget()
            over[:] = False
        elif mode is AutoresetMode.DISABLED and over.any():
            env.reset(options={"reset_mask": over.copy()})
        _, paid, terminated, truncated, info = env.step(np.zeros(len(plans), int))
        if mode is AutoresetMode.NEXT_STEP:
            assert not np.any(paid[over])  # these only start an episode
        over = terminated | truncated
        ledger.add(paid, info["true_reward"], alpha * info["synthetic_return"], over)


@METHODS
@RANDOM
@ANY
def test_stable_baselines3(method, plans, steps, alpha, again):
    vec_env = pytest.importorskip(
        "stable_baselines3.common.vec_env",
        reason="needs the extra: pip install 'synthetic-returns[sb3]'",
    )
    from synthetic_returns.wrappers.sb3 import SyntheticReturnsVecEnv

    env = SyntheticReturnsVecEnv(vec_env.DummyVecEnv(rows(plans)), **options(method, alpha))
    env.reset()
    ledger = Ledger(len(plans))
    for step in range(steps):
        if step == again:
            env.reset()
            ledger.forget()
        _, paid, done, infos = env.step(np.zeros(len(plans), int))
        true, c = (
            np.array([info[x] for info in infos]) for x in ("true_reward", "synthetic_return")
        )
        ledger.add(paid, true, alpha * c, done)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_advances_are_paid_and_taken_back(mode):
    """By hand: +1, +2 for states of time 1 and 2, and minus their sum on the last of 3 steps."""
    env = SyncVectorEnv(rows([[(3, False)], [(3, True)]]), autoreset_mode=mode)
    method = Fickle(replay=sr.Replay(slots=2, updates_per_episode=0.0))
    env = SyntheticReturnsVectorWrapper(env, **options(method, 1.0))
    env.credit.driver.state = jnp.ones(())
    env.reset(seed=0)
    found = [env.step(np.zeros(2, int))[-1]["synthetic_return"].tolist() for _ in range(3)]
    assert found == [[1, 1], [2, 2], [-3, -3]]
