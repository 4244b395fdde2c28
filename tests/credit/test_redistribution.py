"""Return decomposition, RRD and uniform credit, against plain loops in float64."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.data.buffer import padded
from synthetic_returns.credit.data.episode import Episode, Segment
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.redistribution.base import Redistribution, RewardModel
from synthetic_returns.credit.redistribution.decomposition import Decomposition
from synthetic_returns.credit.redistribution.rrd import Rrd, draw_steps
from synthetic_returns.credit.redistribution.uniform import Uniform
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.nn.settings import TorsoSettings

STEPS = 6
SPEC = EpisodeSpec((3,), np.dtype(np.float32), STEPS, num_actions=2)
SMALL: Any = {
    "encoder": TorsoSettings(sizes=(8,)),
    "head_sizes": (8,),
    "replay": Replay(slots=16, batch_size=4, updates_per_episode=0.5),
}
METHODS = [Decomposition(**SMALL), Rrd(subsequence=3, **SMALL), Uniform(**SMALL)]
EACH = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


def random_episodes(seed: int, lengths: list[int]) -> list[Episode]:
    rng = np.random.default_rng(seed)
    return [
        Episode(
            rng.normal(size=(n + 1, 3)).astype(np.float32),
            rng.normal(1, 1, size=n).astype(np.float32),
            np.array([1.0] * (n - 1) + [0], np.float32),
            rng.integers(2, size=n).astype(np.int32),
        )
        for n in lengths
    ]


EPISODES = random_episodes(0, [1, 4, STEPS, STEPS, 3])
BATCH = padded(EPISODES, STEPS, ["action"])


def talkative(model: RewardModel) -> RewardModel:
    """With a head that says something before it has learned."""
    last = model.head.layers[-1]
    weight = jax.random.normal(jax.random.key(5), last.weight.shape)
    return eqx.tree_at(lambda m: m.head.layers[-1].weight, model, weight)


MODEL = talkative(METHODS[0].init(SPEC, jax.random.key(0)).model)


def shares_of(one: Episode) -> np.ndarray:
    """r_hat of an episode, one transition at a time."""
    assert one.action is not None
    said = []
    for t in range(len(one)):
        state, action = one.observation[t : t + 2, None], one.action[t : t + 1, None]
        said.append(MODEL(jnp.asarray(state), jnp.asarray(action), jnp.array([[t == 0]]))[0, 0])
    return np.array(said, np.float64)


SHARES = [shares_of(one) for one in EPISODES]
OUTCOME = np.random.default_rng(1).normal(size=BATCH.length.shape).astype(np.float32)


def loss_of(method: Redistribution, seed: int = 0) -> float:
    key = jax.random.key(seed)
    return float(jax.jit(method.loss)(MODEL, BATCH, jnp.asarray(OUTCOME), key)[0])


def padding() -> float:
    """Columns that only fill the batch up have no steps, and their error is their outcome."""
    return sum(float(x) ** 2 for x in OUTCOME[len(EPISODES) :])


def test_the_sum_over_an_episode_is_fitted_to_its_return():
    squares = [(float(o) - s.sum()) ** 2 for o, s in zip(OUTCOME, SHARES, strict=False)]
    want = (sum(squares) + padding()) / len(OUTCOME)
    assert loss_of(METHODS[0]) == pytest.approx(want, rel=1e-4)


def test_uniform_fits_every_step_to_the_share_of_its_episode():
    squares = [
        (float(o) - share) ** 2 for o, s in zip(OUTCOME, SHARES, strict=False) for share in s
    ]
    assert loss_of(METHODS[2]) == pytest.approx(np.mean(squares), rel=1e-4)


@pytest.mark.parametrize("unbiased", [False, True])
def test_rrd_fits_an_estimate_from_the_steps_that_were_drawn(unbiased):
    method = Rrd(subsequence=3, unbiased=unbiased, **SMALL)
    steps, drawn = draw_steps(BATCH.valid, 3, jax.random.key(0))
    total = padding()
    for i, (one, share) in enumerate(zip(EPISODES, SHARES, strict=True)):
        chosen = share[[int(t) for t, d in zip(steps[:, i], drawn[:, i], strict=True) if d]]
        T, K = len(one), len(chosen)
        assert min(3, T) == K
        total += (float(OUTCOME[i]) - T / K * chosen.sum()) ** 2
        if unbiased and K > 1:
            variance = sum((x - chosen.mean()) ** 2 for x in chosen) / (K - 1)
            total -= T**2 / K * (1 - K / T) * variance
    assert loss_of(method) == pytest.approx(total / len(OUTCOME), rel=1e-4)


def test_without_bias_rrd_is_the_decomposition_in_the_mean_and_with_it_more():
    """By how much more: the variance of a mean of K of T numbers drawn without replacement."""
    plain, exact = loss_of(METHODS[0]), 0.0
    for share in SHARES:
        T, K = len(share), min(3, len(share))
        if T > 1:
            exact += T**2 / K * (1 - K / T) * share.var(ddof=1) / len(OUTCOME)
    found = {}
    for unbiased in (False, True):
        method = Rrd(subsequence=3, unbiased=unbiased, **SMALL)
        loss = jax.jit(
            jax.vmap(lambda k, m=method: m.loss(MODEL, BATCH, jnp.asarray(OUTCOME), k)[0])
        )
        found[unbiased] = np.asarray(loss(jax.random.split(jax.random.key(3), 4000)))
    for unbiased, want in ((True, plain), (False, plain + exact)):
        margin = 4 * found[unbiased].std() / np.sqrt(4000)
        assert found[unbiased].mean() == pytest.approx(want, abs=margin)
        assert margin < exact / 2


def test_steps_are_drawn_without_replacement_all_of_them_alike():
    valid = jnp.arange(5)[:, None] < jnp.array([[5, 2, 0]])
    draw = jax.vmap(lambda key: draw_steps(valid, 3, key))
    steps, drawn = map(np.asarray, draw(jax.random.split(jax.random.key(0), 2000)))
    assert drawn.sum(axis=1).tolist() == [[3, 2, 0]] * 2000
    assert all(len(set(row)) == 3 for row in steps[:, :, 0])
    assert set(steps[:, :2, 1].ravel()) == {0, 1}
    counts = np.bincount(steps[:, :, 0].ravel(), minlength=5) / 2000
    np.testing.assert_allclose(counts, 0.6, atol=0.06)


@EACH
def test_units_are_those_of_what_is_to_be_explained(method):
    """After one update: the mean reward of a step, and the mean square of what that leaves."""
    episodes = EPISODES[:4]
    batch = padded(episodes, STEPS, ["action"])
    assert len(batch.length) == 4
    start = method.init(SPEC, jax.random.key(0))
    state, metrics = eqx.filter_jit(method.learn)(start, batch, jax.random.key(1))
    rewards = np.concatenate([e.reward for e in episodes]).astype(np.float64)
    left = [e.reward.sum() - rewards.mean() * len(e) for e in episodes]
    if method.name == "uniform":
        left = [x / len(e) for x, e in zip(left, episodes, strict=True)]
    assert float(state.mean) == pytest.approx(rewards.mean(), rel=1e-5)
    assert float(state.variance) == pytest.approx(np.mean(np.square(left)), rel=1e-4)
    assert np.isfinite(float(metrics["error"]))


@EACH
def test_a_transition_is_paid_its_share_instead_of_its_reward(method):
    state = eqx.tree_at(
        lambda s: (s.model, s.mean, s.variance),
        method.init(SPEC, jax.random.key(0)),
        (MODEL, jnp.float32(0.5), jnp.float32(4.0)),
    )
    one, share = EPISODES[2], SHARES[2]
    assert one.action is not None
    time = np.arange(STEPS + 1)[:, None]
    segment = Segment(
        one.observation[:, None], time == 0, time == STEPS, one.reward[:, None],
        one.discount[:, None], one.action[:, None],
    )  # fmt: skip
    credit, _ = method.assign(state, None, segment)
    credit = credit.shared_out(1)
    want = 0.5 + 2 * share - one.reward
    np.testing.assert_allclose(np.asarray(credit.reward)[:, 0], want, rtol=1e-4, atol=1e-5)
    explained = method.explain(state, padded([one], STEPS, ["action"]))
    assert [*explained.terms] == ["credit", "r_hat"]
    np.testing.assert_allclose(np.asarray(explained.paid)[1:, 0], want, rtol=1e-4, atol=1e-5)
    r_hat = np.asarray(explained.terms["r_hat"].values)[:, 0]
    np.testing.assert_allclose(r_hat, [0, *(0.5 + 2 * share)], rtol=1e-4, atol=1e-5)


@EACH
def test_thinned_transitions_stand_for_those_that_were_left_out(method):
    view = View(stride=2)
    spec = dataclasses.replace(SPEC, max_steps=view.kept(STEPS), stride=2)
    driver = CreditDriver(method, spec, view, max_episode_steps=STEPS, num_envs=1,
                          key=jax.random.key(0))  # fmt: skip
    driver.state = eqx.tree_at(lambda s: s.mean, driver.state, jnp.float32(3.0))
    segment = Segment(
        np.zeros((2, 1, 3), np.float32), np.array([[True], [False]]), np.zeros((2, 1), bool),
        np.zeros((1, 1), np.float32), np.ones((1, 1), np.float32), np.zeros((1, 1), np.int32),
    )  # fmt: skip
    ((_, credit),) = driver.follow(segment, None)
    assert float(np.asarray(credit.reward)[0, 0]) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rrd(subsequence=0), "subsequence is 0; it must be a whole number of at least 1"),
        (lambda: Rrd(subsequence=1, unbiased=True), "draw at least 2, or set unbiased to False"),
        (lambda: Uniform(learning_rate=0.0), "learning_rate is 0.0; .* above 0"),
        (lambda: Decomposition(learning_rate=float("nan")), "learning_rate is nan"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
