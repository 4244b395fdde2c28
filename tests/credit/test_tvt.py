"""TVT: the transport rule against plain loops, the memory, and what is paid for."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.data.buffer import padded
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.tvt.method import Tvt, discounted_returns
from synthetic_returns.credit.tvt.model import read
from synthetic_returns.credit.tvt.transport import splices, transport_from, transported
from synthetic_returns.credit.view import View
from synthetic_returns.nn.settings import TorsoSettings
from tests.credit.known_contributions import episode_of

LENGTH = 8
METHOD = Tvt(
    encoder=TorsoSettings(sizes=(32,)),
    code=16,
    horizon=1,
    replay=Replay(slots=256, batch_size=32, updates_per_episode=0.5),
)


def oracle(weights, strengths, values, threshold, horizon, alpha):
    """Temporal value transport as the authors describe it, one episode, in float64.

    Args:
      weights: ``[heads][t'][t]``.
      strengths: ``[heads][t']``.
      values: ``[t']``.
      threshold: of strengths.
      horizon: steps that are too near.
      alpha: the share that is transported.
    """
    steps = len(values)
    reward = np.zeros(steps)
    for w, beta in zip(weights, strengths, strict=True):
        beta = [b if t - int(np.argmax(w[t])) > horizon else 0.0 for t, b in enumerate(beta)]
        windows, open_window = [], []
        for t in range(steps):
            if beta[t] > threshold:
                open_window.append(t)
            elif open_window:
                windows.append(open_window)
                open_window = []
        if open_window:
            windows.append(open_window)
        for window in windows:
            t_max = max(window, key=lambda t: beta[t])  # the first of several
            for t in range(t_max):
                if t_max - t > horizon:
                    reward[t] += alpha * w[t_max][t] * values[t_max]
    return reward


def random_reads(seed, time, batch, heads):
    """Reads on both sides of the threshold, of near and of far steps, in float64."""
    rng = np.random.default_rng(seed)
    match = rng.normal(size=(batch, heads, time, time)) * 3
    weights = np.where(np.tril(np.ones((time, time)), -1) > 0, np.exp(match), 0)
    weights /= np.maximum(weights.sum(axis=-1, keepdims=True), 1e-12)
    strengths = rng.uniform(0, 4, size=(time, batch, heads)).round(1)  # some are equal
    return weights, strengths, rng.normal(size=(time, batch))


@pytest.mark.parametrize(("time", "batch", "heads"), [(1, 1, 1), (7, 5, 3), (40, 2, 2)])
@pytest.mark.parametrize("horizon", [0, 3])
def test_value_is_transported_as_in_plain_loops(time, batch, heads, horizon):
    weights, strengths, values = random_reads(time, time, batch, heads)
    want = np.stack([
        oracle(weights[b], strengths[:, b].T, values[:, b], 2.0, horizon, 0.9)
        for b in range(batch)
    ], axis=1)  # fmt: skip
    w, beta, v = (jnp.asarray(x, jnp.float32) for x in (weights, strengths, values))
    sources = transport_from(w, beta, threshold=2.0, horizon=horizon)
    got = transported(w, v, sources, alpha=0.9, horizon=horizon)
    np.testing.assert_allclose(got.sum(axis=0).T, want, rtol=1e-4, atol=1e-5)
    assert np.any(want) == (time > 1)


def test_the_strongest_step_of_each_window_stands_for_it():
    strengths = np.array([0, 3, 5, 4, 0, 3, 0, 2, 6, 6], np.float32)
    found = splices(jnp.asarray(strengths)[:, None, None], 2.0)[:, 0, 0]
    np.testing.assert_array_equal(np.flatnonzero(found), [2, 5, 8])  # 2 itself is not above 2


@pytest.mark.parametrize(("time", "batch"), [(1, 1), (7, 5)])
def test_memory_is_read_by_content(time, batch):
    rng = np.random.default_rng(time)
    key, memory = rng.normal(size=(time, batch, 2, 3)), rng.normal(size=(time, batch, 3))
    strength = rng.uniform(0, 5, size=(time, batch, 2))
    length = rng.integers(1, time + 1, size=batch)
    valid = np.arange(time)[:, None] < length[None]
    want = np.zeros((batch, 2, time, time))
    for b in range(batch):
        for t in range(length[b]):
            for h in range(2):
                q = key[t, b, h] / np.linalg.norm(key[t, b, h])
                cosines = [memory[k, b] @ q / np.linalg.norm(memory[k, b]) for k in range(t)]
                e = np.exp(strength[t, b, h] * np.array(cosines))
                want[b, h, t, :t] = e / e.sum()
    asked, beta, rows = (jnp.asarray(x, jnp.float32) for x in (key, strength, memory))
    weights, found = read(asked, beta, rows, jnp.asarray(valid))
    np.testing.assert_allclose(weights, want, rtol=1e-4, atol=1e-5)
    want_found = np.einsum("bhtk,kbc->tbhc", want, memory)
    np.testing.assert_allclose(found, want_found, rtol=1e-4, atol=1e-5)


def test_returns_are_discounted_to_the_end():
    reward = np.array([[1.0, 0], [0, 2], [4, 0]], np.float32)
    got = discounted_returns(jnp.asarray(reward), 0.5)
    np.testing.assert_allclose(got, [[2.0, 1.0], [2.0, 2.0], [4.0, 0.0]])


def driver_of(spec, method=METHOD):
    return CreditDriver(method, spec, View(), max_episode_steps=LENGTH, num_envs=1,
                        key=jax.random.key(0))  # fmt: skip


def make_driver(method=METHOD):
    return driver_of(EpisodeSpec((5,), np.dtype(np.float32), LENGTH, num_actions=2), method)


def keys_and_doors(seed, number, scale=1.0):
    """A key, kind 1, lies at a random place in half of the episodes; the last step pays for it.

    Kind 2 pays a little at once, in half of the states.
    """
    rng = np.random.default_rng(seed)
    episodes = []
    for _ in range(number):
        kinds = np.where(rng.random(LENGTH) < 0.5, 0, 2)
        reward = (0.2 * (kinds == 2)).astype(np.float32)
        has_key = rng.random() < 0.5
        if has_key:
            at = rng.integers(4)
            kinds[at], reward[at] = 1, 0
        kinds[-1] = 3
        reward[-1] = 2.0 * has_key
        action = np.zeros(LENGTH, np.int32)
        one = episode_of(np.eye(5, dtype=np.float32)[kinds], scale * reward)
        episodes.append(dataclasses.replace(one, action=action))
    return episodes


def trained(method=METHOD, scale=1.0, batches=80):
    driver = make_driver(method)
    for batch in range(batches):
        driver.learn(keys_and_doors(batch, 16, scale))
    return driver


def paid_by_kind(driver, scale=1.0):
    """The mean of what is transported to each kind of state, and how much of it with a key."""
    paid = {0: [], 1: [], 2: []}
    for episode in keys_and_doors(1000, 64, scale):
        given = np.asarray(driver.explain(episode).paid)
        credit = np.asarray(driver._credit_of(episode).reward)[:, 0]
        np.testing.assert_allclose(credit[:-1], given[1:-1], rtol=1e-4, atol=1e-5)
        assert credit[-1] == 0
        for kind, value in zip(episode.observation[:-2].argmax(axis=1), given, strict=False):
            paid[int(kind)].append(value / scale)
    return {kind: np.mean(values) for kind, values in paid.items()}


def test_value_goes_to_the_state_that_is_remembered():
    paid = paid_by_kind(trained())
    assert paid[1] > 1.0  # of 0.9 * 2
    assert max(paid[0], paid[2]) < 0.2


def test_the_unit_of_reward_is_that_of_what_is_paid():
    one, thousand = paid_by_kind(trained()), paid_by_kind(trained(scale=1000.0), 1000.0)
    assert thousand[1] == pytest.approx(one[1], rel=0.2)


def test_what_lies_within_the_horizon_gets_nothing():
    driver = trained(dataclasses.replace(METHOD, horizon=LENGTH), batches=20)
    for episode in keys_and_doors(1000, 8):
        assert not np.any(driver._credit_of(episode).reward)


def test_reads_that_are_not_sharp_transport_nothing():
    driver = trained(dataclasses.replace(METHOD, threshold=1e6), batches=20)
    for episode in keys_and_doors(1000, 8):
        assert not np.any(driver._credit_of(episode).reward)


def test_a_step_knows_its_past_and_nothing_else():
    driver = make_driver()
    driver.learn(keys_and_doors(0, 16))
    episodes = keys_and_doors(1, 2)
    batch = padded(episodes, LENGTH, ["action"])
    reads = eqx.filter_jit(METHOD.reads)(driver.state, batch)
    other = batch.observation.at[5].add(1.0), batch.reward.at[5].add(1.0)
    later = eqx.tree_at(lambda b: (b.observation, b.reward), batch, other)
    changed = eqx.filter_jit(METHOD.reads)(driver.state, later)
    np.testing.assert_array_equal(changed.value[:5], reads.value[:5])
    np.testing.assert_array_equal(changed.strengths[:5], reads.strengths[:5])
    assert np.any(changed.value[5] != reads.value[5])
    assert np.any(changed.value[6] != reads.value[6])  # it is remembered


def test_codes_keep_what_happens_rarely():
    """A key is in one of sixteen states; the error is measured in standard deviations."""
    driver = trained()
    batch = padded(keys_and_doors(1000, 64), LENGTH, ["action"])
    state = driver.state
    shown = state.model.shown(batch, state.scale)
    code = state.model.codes(batch, shown)
    missed = np.asarray(state.model.reconstructed(code) - state.unusual(shown))[..., 1]
    valid = np.asarray(batch.valid)
    assert np.mean(np.square(missed[valid])) < 0.1  # of 1


def test_actions_that_are_not_known_are_done_without():
    spec = EpisodeSpec((5,), np.dtype(np.float32), LENGTH, action_dtype=None)
    _learn(spec, episode_of(np.zeros((LENGTH, 5), np.float32), np.ones(LENGTH)))


def test_observations_may_be_numbers():
    spec = EpisodeSpec((), np.dtype(np.int32), LENGTH, kinds=8, action_dtype=None)
    _learn(spec, episode_of(np.zeros(LENGTH, np.int32), np.ones(LENGTH)))


def test_frames_may_be_seen_as_changes():
    view = View(changes=True)
    spec = EpisodeSpec.seen(view, (4, 4, 2), np.dtype(np.uint8), LENGTH, action_dtype=None)
    _learn(spec, episode_of(np.zeros((LENGTH, 4, 4, 2), np.uint8), np.ones(LENGTH)))


def _learn(spec, episode):
    driver = driver_of(spec)
    driver.learn([episode] * 4)
    assert np.isfinite(driver.report()["value_error"])
    assert np.all(np.isfinite(np.asarray(driver._credit_of(episode).reward)))


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"heads": 0}, "heads is 0; it must be a whole number of at least 1"),
        ({"horizon": -1}, "horizon is -1; it must be 0 or more steps"),
        ({"discount": 1.5}, r"discount is 1.5; it must lie in \[0, 1\]"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, rule):
    with pytest.raises(ValueError, match=rule):
        Tvt(**settings)
