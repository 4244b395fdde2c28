"""Pairwise state-associative learning against the equations of the paper's supplement."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.pairwise.method import Pairwise, SaAlone
from synthetic_returns.credit.pairwise.regression import low_rank, plain
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.nn.settings import TorsoSettings
from tests.credit.known_contributions import episode_of

SMALL = Pairwise(
    encoder=TorsoSettings(sizes=(32,)),
    head_sizes=(16,),
    replay=Replay(slots=128, batch_size=16, updates_per_episode=0.5),
    learning_rate=3e-3,
)


def oracle(phi, psi, reward, length, *, multi_stage):
    """Eq. (regression_model) and its stages in plain loops, with gradients by hand.

    The contribution of k to t is ``phi[k] . psi[t]``. A stage takes what earlier ones said as
    given, so that only its own contribution has a gradient.
    """
    time, batch, _ = phi.shape
    r_hat, contributed = np.zeros((time, batch)), np.zeros((time, batch))
    d_phi, d_psi = np.zeros_like(phi), np.zeros_like(psi)
    total, count = 0.0, 0
    for row in range(batch):
        n = length[row]
        c = {(k, t): phi[k, row] @ psi[t, row] for t in range(n) for k in range(t + 1)}
        for t in range(n):
            r_hat[t, row] = sum(c[k, t] for k in range(t + 1))
            contributed[t, row] = sum(c[t, tau] for tau in range(t + 1, n))
            if not multi_stage:
                error = reward[t, row] - r_hat[t, row]
                total, count = total + error**2, count + 1
                for k in range(t + 1):
                    d_phi[k, row] -= 2 * error * psi[t, row]
                    d_psi[t, row] -= 2 * error * phi[k, row]
                continue
            left = reward[t, row]
            for k in range(t + 1):
                left = left - c[k, t]
                total, count = total + left**2, count + 1
                d_phi[k, row] -= 2 * left * psi[t, row]
                d_psi[t, row] -= 2 * left * phi[k, row]
    return total / count, r_hat, contributed, d_phi / count, d_psi / count


@pytest.mark.parametrize("multi_stage", [False, True])
@pytest.mark.parametrize(("time", "length"), [(1, [1]), (7, [7, 4, 1, 6, 7])])
def test_both_forms_are_the_equation(time, length, multi_stage):
    rng = np.random.default_rng(time)
    phi, psi = rng.normal(size=(2, time, len(length), 3)).astype(np.float32)
    reward = rng.normal(size=(time, len(length))).astype(np.float32)
    valid = jnp.asarray(np.arange(time)[:, None] < np.array(length)[None])
    first, second, paid = (x.astype(np.float64) for x in (phi, psi, reward))
    want = oracle(first, second, paid, length, multi_stage=multi_stage)

    reward = jnp.asarray(reward)

    def by_pairs(phi, psi):
        c = jnp.einsum("kbr,tbr->ktb", phi, psi)
        found = plain(c, reward, valid, multi_stage=multi_stage)
        return found.loss, found

    def by_factors(phi, psi):
        found = low_rank(phi, psi, reward, valid, multi_stage=multi_stage)
        return found.loss, found

    for form in (by_pairs, by_factors):
        with_gradients = jax.jit(jax.value_and_grad(form, (0, 1), has_aux=True))
        (loss, found), gradients = with_gradients(jnp.asarray(phi), jnp.asarray(psi))
        got = (loss, found.r_hat, found.contributed, *gradients)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-3, atol=1e-4)


def make_learner(method, shape=(5,), steps=6):
    spec = EpisodeSpec(shape, np.dtype(np.float32), steps, num_actions=2)
    return CreditDriver(method, spec, View(), max_episode_steps=steps, num_envs=1,
                        key=jax.random.key(0))  # fmt: skip


def two_causes(seed, number):
    """Kinds 0 and 1 decide, each with chance 1/2, what the states of kinds 3 and 4 pay."""
    rng = np.random.default_rng(seed)
    episodes = []
    for _ in range(number):
        a, b = rng.random(2) < 0.5
        kinds = [0 if a else 2, 1 if b else 2, 2, 3, 2, 4]
        reward = np.array([0, 0, 0, a, 0, 2 * b], np.float32)
        episodes.append(episode_of(np.eye(5, dtype=np.float32)[kinds], reward))
    return episodes


@pytest.mark.parametrize("form", ["plain", "low-rank"])
def test_pairs_say_which_state_pays_for_which(form):
    driver = make_learner(dataclasses.replace(SMALL, form=form), steps=9)
    for batch in range(60):
        driver.learn(two_causes(batch, 16))
    episode = next(e for e in two_causes(1000, 100) if e.reward.sum() == 3)
    explanation = driver.explain(episode)
    c = np.asarray(explanation.terms["pairs"].values)
    assert c.shape == (7, 7)  # one for each state, the terminal one included
    assert c[3, 0] - c[3, 1] > 0.4  # the first cause pays at the fourth state
    assert c[5, 1] - c[5, 0] > 0.8  # the second one at the last
    d = np.asarray(driver.method.of_states(driver.state, jnp.eye(5)))
    # Worth 1 and 2; a sum leaves open how much of that is the cost of the state in its place.
    assert 0.5 < d[0] - d[2] < 1.8
    assert 1.2 < d[1] - d[2] < 2.8
    np.testing.assert_allclose(np.asarray(explanation.paid)[:2], d[:2], rtol=1e-4)


def test_both_forms_cost_what_they_say():
    """Twice the steps are four times the floating-point operations in the plain form, else two."""

    def operations(method, time):
        spec = EpisodeSpec((5,), np.dtype(np.float32), time, num_actions=2)
        state = method.init(spec, jax.random.key(0))
        batch = EpisodeBatch(
            observation=jnp.zeros((time + 1, 2, 5)),
            reward=jnp.zeros((time, 2)),
            discount=jnp.ones((time, 2)),
            length=jnp.full(2, time, jnp.int32),
        )
        arrays, rest = eqx.partition(state, eqx.is_array)

        def learn(arrays):
            after, _ = method.learn(eqx.combine(arrays, rest), batch, jax.random.key(0))
            return eqx.filter(after, eqx.is_array)

        cost: Any = jax.jit(learn).lower(arrays).compile().cost_analysis()
        return cost["flops"]

    for form, growth in (("plain", 4), ("low-rank", 2)):
        method = dataclasses.replace(SMALL, form=form)
        assert operations(method, 512) / operations(method, 256) == pytest.approx(growth, rel=0.2)


def test_alone_the_first_action_that_tells_of_a_reward_gets_the_credit():
    """Two right actions in a row pay: the utility of both is known, that of wrong ones too."""
    driver = make_learner(SaAlone(encoder=SMALL.encoder, replay=SMALL.replay, learning_rate=3e-3),
                          shape=(3,), steps=3)  # fmt: skip
    rng = np.random.default_rng(0)
    for _ in range(60):
        episodes = []
        for _ in range(16):
            action = rng.integers(2, size=3).astype(np.int32)
            kinds = np.eye(3, dtype=np.float32)
            episode = episode_of(kinds, [0, 0, float(action[0] * action[1])])
            episodes.append(dataclasses.replace(episode, action=action))
        driver.learn(episodes)
    method: Any = driver.method
    advantage = np.asarray(method.advantage(driver.state, jnp.eye(3)))
    np.testing.assert_allclose(advantage.sum(axis=1), 0, atol=1e-5)
    assert advantage[0, 1] > 0.15  # worth 1/2 more than the other
    assert advantage[1, 1] > 0.1
    assert abs(advantage[2, 1]) < 0.1


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="rank is 0; it must be a whole number of at least 1"):
        Pairwise(rank=0)
