"""SECRET: attention, what it redistributes, and where it looks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.data.buffer import padded
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.secret import Secret, redistributed
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.nn.settings import TorsoSettings
from tests.credit.known_contributions import episode_of

LENGTH = 6
METHOD = Secret(
    encoder=TorsoSettings(sizes=(32,)),
    width=16,
    replay=Replay(slots=256, batch_size=32, updates_per_episode=0.5),
    learning_rate=3e-3,
)


def make_driver(method=METHOD):
    spec = EpisodeSpec((4,), np.dtype(np.float32), LENGTH, action_dtype=None)
    return CreditDriver(method, spec, View(), max_episode_steps=LENGTH, num_envs=1,
                        key=jax.random.key(0))  # fmt: skip


def keys_and_doors(seed, number):
    """A key, kind 1, lies at a random place in half of the episodes; the last step pays for it."""
    rng = np.random.default_rng(seed)
    episodes = []
    for _ in range(number):
        kinds = np.where(rng.random(LENGTH) < 0.5, 0, 2)
        has_key = rng.random() < 0.5
        if has_key:
            kinds[rng.integers(LENGTH - 1)] = 1
        kinds[-1] = 3
        reward = np.zeros(LENGTH, np.float32)
        reward[-1] = 2.0 * has_key
        episodes.append(episode_of(np.eye(4, dtype=np.float32)[kinds], reward))
    return episodes


@pytest.mark.parametrize(("time", "batch"), [(1, 1), (7, 5)])
def test_shares_are_the_sum_over_later_rewards(time, batch):
    rng = np.random.default_rng(time)
    alpha = np.tril(rng.random((batch, time, time))).transpose(1, 2, 0)
    reward = rng.normal(size=(time, batch))
    want = np.zeros((time, batch))
    for b in range(batch):
        for k in range(time):
            want[k, b] = sum(alpha[t, k, b] * reward[t, b] for t in range(k + 1, time))
    got = redistributed(*(jnp.asarray(x, jnp.float32) for x in (alpha, reward)))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_attention_looks_back_only_and_at_what_exists():
    driver = make_driver()
    episodes = [episode_of(np.eye(4, dtype=np.float32)[k], np.ones(len(k)))
                for k in ([0, 1, 2, 0, 1, 3], [0, 1, 3])]  # fmt: skip
    batch = padded(episodes, LENGTH)
    model = eqx.filter_jit(driver.state.model)
    attention, logits = model(batch.source, batch.valid)
    for row, n in enumerate((6, 3)):
        a = np.asarray(attention)[:, :, row]
        np.testing.assert_allclose(a[:n].sum(axis=1), 1, rtol=1e-5)
        assert not np.any(np.triu(a, 1))
        assert not np.any(a[n:])
    later = batch.source.at[4].set(1.0)
    _, changed = model(later, batch.valid)
    logits, changed = np.asarray(logits)[:, :2], np.asarray(changed)[:, :2]  # of the two episodes
    np.testing.assert_array_equal(changed[:4], logits[:4])
    assert np.any(changed[4:] != logits[4:])


def test_the_reward_goes_to_its_cause():
    driver = make_driver()
    for batch in range(60):
        driver.learn(keys_and_doors(batch, 16))
    paid = {0: [], 1: [], 2: []}
    for episode in keys_and_doors(1000, 64):
        explanation = driver.explain(episode)
        share = np.asarray(explanation.paid)
        if not episode.reward.any():
            assert not np.any(share)
            continue
        for kind, value in zip(episode.observation[:-2].argmax(axis=1), share, strict=False):
            paid[int(kind)].append(value)
        credit = np.asarray(driver._credit_of(episode).reward)[:, 0]
        np.testing.assert_allclose(credit[:-1], share[1:-1], rtol=1e-4, atol=1e-5)
        assert credit.sum() == pytest.approx(0, abs=1e-4)  # settled at the end
    assert np.mean(paid[1]) > 1.0  # of 2
    assert max(np.mean(paid[0]), np.mean(paid[2])) < 0.3


def test_it_learns_whatever_the_sign_of_a_unit():
    one, thousand = make_driver(), make_driver()
    episodes = keys_and_doors(0, 32)
    one.learn(episodes)
    thousand.learn([_scaled(e) for e in episodes])
    got, want = (np.asarray(d.explain(e).paid) for d, e in
                 ((thousand, _scaled(episodes[0])), (one, episodes[0])))  # fmt: skip
    np.testing.assert_allclose(got, 1000 * want, rtol=1e-4)


def _scaled(episode):
    return episode_of(episode.observation[:-1], 1000 * episode.reward)
