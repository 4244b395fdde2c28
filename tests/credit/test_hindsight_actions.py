"""HCA and COCOA against their equations, in plain loops."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.data.buffer import padded
from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.hindsight_actions.cocoa import Cocoa
from synthetic_returns.credit.hindsight_actions.hca import Hca
from synthetic_returns.credit.hindsight_actions.outcomes import RewardClasses
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.nn.settings import TorsoSettings
from tests.credit.known_advantages import make_decisions
from tests.credit.known_contributions import KINDS, LENGTH, episode_of

SIZES = {"encoder": TorsoSettings(sizes=(16,)), "rank": 3, "most": 5}
METHODS = [
    Cocoa(objects="reward", **SIZES),
    Cocoa(objects="features", **SIZES),
    Hca(condition="state", **SIZES),
    Hca(condition="return", **SIZES),
]
EACH = pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.name}-{_choice(m)}")


def _choice(method):
    return method.objects if isinstance(method, Cocoa) else method.condition


def make_driver(method):
    spec = EpisodeSpec((KINDS,), np.dtype(np.float32), LENGTH, num_actions=2, has_policy=True)
    return CreditDriver(method, spec, View(), max_episode_steps=LENGTH, num_envs=1,
                        key=jax.random.key(0))  # fmt: skip


def with_rewards(seed, number):
    """Decisions that are paid for on several steps: two kinds of rewards, and zeros."""
    rng = np.random.default_rng(seed)
    episodes = []
    for episode in make_decisions(seed, number):
        reward = rng.choice([0, 0, 1, -2], LENGTH).astype(np.float32)
        length = rng.integers(2, LENGTH + 1)
        cut = {
            name: getattr(episode, name)[:length]
            for name in ("discount", "action", "log_probs", "value")
        }
        observation = episode.observation[: length + 1]
        episodes.append(
            dataclasses.replace(episode, observation=observation, reward=reward[:length], **cut)
        )
    return episodes


def batch_of(episodes) -> EpisodeBatch:
    return padded(episodes, LENGTH, ["action", "log_probs"])


def learned(method):
    """A state with parameters of some size, that has seen the rewards."""
    driver = make_driver(method)
    driver.learn(with_rewards(0, 16))
    state = jax.tree.map(lambda x: jnp.array(x) if eqx.is_array(x) else x, driver.state)
    keys = iter(jax.random.split(jax.random.key(1), 4))
    layers = lambda s: (s.model.outcome_head.weight, s.model.reward.weight)  # noqa: E731
    return eqx.tree_at(layers, state, replace_fn=lambda x: jax.random.normal(next(keys), x.shape))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def described(method, state, episode, k):
    """What the model is told about the outcome of step k."""
    reward = episode.reward[k]
    if _choice(method) == "reward":
        values = list(np.asarray(state.classes.values))
        return np.eye(method.most, dtype=np.float32)[values.index(reward)]
    observation = jnp.asarray(episode.observation[k])
    if _choice(method) == "state":
        return observation
    if _choice(method) == "return":
        z = episode.reward[k:].sum()
        spread = np.sqrt(float(state.return_variance))
        return np.array([(z - float(state.return_mean)) / spread], np.float32)
    _, features = rewards_of(state.model, observation)
    return np.append(features[0, 0], reward / np.asarray(state.scale))


# Compiled as a whole: a program for every operation would take far longer.
phi_of = eqx.filter_jit(lambda model, x: model.phi(x[None, None])[0, 0])
psi_of = eqx.filter_jit(lambda model, x: model.psi(x[None, None])[0, 0])
rewards_of = eqx.filter_jit(lambda model, x: model.rewards(x[None, None]))
parts_of = eqx.filter_jit(lambda method, state, batch: method.parts(state, batch))
pairs_of = eqx.filter_jit(lambda method, state, batch: method.pairs(state, batch))
loss_of = eqx.filter_jit(
    lambda method, state, batch, key: method.hindsight_loss(state, state.model, batch, key)
)


def hindsight(method, state, episode, t, k):
    """h(a | s_t, u_k)."""
    phi = np.asarray(phi_of(state.model, jnp.asarray(episode.observation[t])))
    psi = np.asarray(psi_of(state.model, jnp.asarray(described(method, state, episode, k))))
    return softmax(episode.log_probs[t].astype(np.float64) + phi.astype(np.float64) @ psi)


def oracle(method, state, episode):
    """The advantages of all actions of one episode, as the papers write them."""
    n = len(episode)
    advantage = np.zeros((n, 2))
    for t in range(n):
        pi, taken = np.exp(episode.log_probs[t].astype(np.float64)), episode.action[t]
        if _choice(method) == "return":
            h, z = hindsight(method, state, episode, t, t), episode.reward[t:].sum()
            advantage[t, taken] = (1 - pi[taken] / h[taken]) * z / pi[taken]
            continue
        r, _ = rewards_of(state.model, jnp.asarray(episode.observation[t]))
        r = np.asarray(r, np.float64)[0, 0] * float(state.scale)
        advantage[t] = r - (pi * r).sum()
        for k in range(t + 1, n):
            if episode.reward[k]:
                h = hindsight(method, state, episode, t, k)
                advantage[t] += (h / pi - 1) * episode.reward[k]
    return advantage


@EACH
def test_advantages_are_those_of_the_paper(method):
    state, episodes = learned(method), with_rewards(1, 5)
    # As many outcomes as an episode can have, so that none is left out.
    method = dataclasses.replace(method, most=5 if _choice(method) == "reward" else LENGTH)
    batch = batch_of(episodes)
    got = np.asarray(sum(parts_of(method, state, batch)))
    assert np.ptp(got) > 1
    for row, episode in enumerate(episodes):
        want = oracle(method, state, episode)
        np.testing.assert_allclose(got[: len(episode), row], want, rtol=1e-3, atol=1e-4)
        centred = (np.exp(episode.log_probs) * want).sum(axis=1)
        if _choice(method) != "return":
            np.testing.assert_allclose(centred, 0, atol=1e-6)  # by their mean under the policy


@EACH
def test_the_loss_is_the_cross_entropy_over_pairs(method):
    state, episodes = learned(method), with_rewards(2, 5)
    method = dataclasses.replace(method, most=5 if _choice(method) == "reward" else LENGTH)
    loss, _ = loss_of(method, state, batch_of(episodes), jax.random.key(0))
    terms = []
    for episode in episodes:
        for t in range(len(episode)):
            later = [t] if _choice(method) == "return" else range(t + 1, len(episode))
            for k in later:
                if isinstance(method, Hca) or episode.reward[k]:  # HCA learns about all states
                    h = hindsight(method, state, episode, t, k)
                    terms.append(-np.log(h[episode.action[t]]))
    assert float(loss) == pytest.approx(np.mean(terms), rel=1e-4)


def test_pairs_add_up_to_the_part_of_later_rewards():
    for method in METHODS[:3]:
        state, batch = learned(method), batch_of(with_rewards(3, 4))
        _, future = parts_of(method, state, batch)
        pairs = np.asarray(pairs_of(method, state, batch).values)
        of_taken = np.take_along_axis(np.asarray(future), np.asarray(batch.action)[..., None], 2)
        np.testing.assert_allclose(pairs.sum(axis=0)[:, :-1].T, of_taken[..., 0],
                                   rtol=1e-3, atol=1e-4)  # fmt: skip


@EACH
def test_the_first_reward_of_all_can_be_credited(method):
    driver = make_driver(method)
    episodes = make_decisions(0, 32)
    driver.learn([dataclasses.replace(e, reward=np.zeros_like(e.reward)) for e in episodes])
    paid = dataclasses.replace(episodes[0], reward=np.full_like(episodes[0].reward, 100))
    assert np.all(np.isfinite(np.asarray(driver._credit_of(paid).advantage)))


def test_given_states_that_show_it_the_cause_is_found():
    """The first action decides which state pays; the state shows it, as HCA asks for."""
    rng = np.random.default_rng(0)
    driver = make_driver(Hca(condition="state", encoder=TorsoSettings(sizes=(32,))))
    log_probs = np.log(np.full((3, 2), 0.5, np.float32))
    advantage = []
    for number in range(400):
        action = rng.integers(2, size=3).astype(np.int32)
        kinds = [0, 1, 2 if action[0] else 3]
        episode = episode_of(np.eye(KINDS, dtype=np.float32)[kinds], [0, 0, action[0]])
        episode = dataclasses.replace(episode, action=action, log_probs=log_probs)
        driver.learn([episode])
        if number > 300:
            advantage.append(np.asarray(driver._credit_of(episode).advantage))
    mean = np.mean(advantage, axis=0)[:, 0]
    np.testing.assert_allclose(mean[0], [-0.5, 0.5], atol=0.2)
    np.testing.assert_allclose(mean[1], 0, atol=0.1)


def test_rewards_get_a_class_each_and_later_ones_the_nearest():
    def seen(classes, rewards):
        reward = jnp.asarray(rewards, jnp.float32)[:, None]
        length = jnp.asarray([len(rewards)], jnp.int32)
        return classes.seen(
            EpisodeBatch(jnp.zeros((len(rewards) + 1, 1, 1)), reward, reward, length)
        )

    classes = seen(RewardClasses.none(3), [0, 5, 0, 5, -1])
    assert sorted(np.asarray(classes.values)[:2]) == [-1, 5]
    assert int(classes.known) == 2
    again = seen(classes, [5, -1, 0])
    np.testing.assert_array_equal(again.values, classes.values)
    full = seen(seen(classes, [2.0]), [9.0])
    assert int(full.known) == 3
    index = np.asarray(full.of(jnp.asarray([[0.0, 5.0, 8.0, 2.0]])))[0]
    assert index[0] == -1
    assert np.asarray(full.values)[index[1:]].tolist() == [5, 5, 2]
    assert np.asarray(RewardClasses.none(3).of(jnp.ones((1, 1)))) == -1


def test_time_and_memory_grow_with_the_steps_and_not_with_their_square():
    def operations(method, time):
        spec = EpisodeSpec((KINDS,), np.dtype(np.float32), time, num_actions=2, has_policy=True)
        state = method.init(spec, jax.random.key(0))
        batch = EpisodeBatch(
            observation=jnp.zeros((time + 1, 1, KINDS)),
            reward=jnp.ones((time, 1)),
            discount=jnp.ones((time, 1)),
            length=jnp.full(1, time, jnp.int32),
            action=jnp.zeros((time, 1), jnp.int32),
            log_probs=jnp.full((time, 1, 2), jnp.log(0.5)),
        )
        arrays, rest = eqx.partition(state, eqx.is_array)
        parts = jax.jit(lambda x: method.parts(eqx.combine(x, rest), batch))
        cost: Any = parts.lower(arrays).compile().cost_analysis()
        return cost["flops"]

    for method in METHODS:
        assert operations(method, 1024) / operations(method, 512) < 2.3


@pytest.mark.parametrize("setting", ["rank", "most"])
def test_settings_that_make_no_sense_are_refused(setting):
    with pytest.raises(ValueError, match=f"{setting} is 0; it must be a whole number"):
        Cocoa(**{setting: 0})  # pyright: ignore
