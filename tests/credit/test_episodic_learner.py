"""The episodic method finds contributions that are known, and trusts itself no further."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.episodic.state import return_over, sparsity_cost
from synthetic_returns.credit.explainer import EpisodeExplainer
from synthetic_returns.credit.view import View
from tests.credit.known_contributions import (
    KINDS,
    LENGTH,
    SMALL,
    TRUE,
    contributions,
    episode_of,
    make_episodes,
    make_learner,
    predict,
    trained,
    with_replay,
)


def test_true_contributions_are_found():
    learner = trained(noise=0.5)
    np.testing.assert_allclose(contributions(learner), TRUE - TRUE.mean(), atol=0.15)
    assert learner.state.trust > 0.8
    report = learner.report()
    assert report["explained_variance_open"] > 0.7
    assert report["buffer_episodes"] == SMALL.replay.slots


def test_noise_is_not_trusted():
    """A reward that nothing explains: what c has fitted does not hold on new episodes."""
    learner = trained(contribution=0 * TRUE, noise=1.0, batches=40)
    assert 0 <= learner.state.trust < 0.35
    blind = eqx.tree_at(lambda s: s.evidence, learner.state, jnp.array([-1.0, 1.0]))
    assert blind.trust == 0
    assert not np.any(blind.contribution(jnp.eye(KINDS)))
    sure = eqx.tree_at(lambda s: s.evidence, learner.state, jnp.array([3.0, 1.0]))
    assert sure.trust == 1


def test_trust_can_be_switched_off():
    options = dataclasses.replace(SMALL, trust=False)
    assert make_learner(options).state.trust == 1
    assert make_learner(SMALL).state.trust == 0


def test_the_unit_of_reward_does_not_matter():
    one, thousand = trained(noise=0.1), trained(noise=0.1, scale=1000.0)
    np.testing.assert_allclose(contributions(thousand) / 1000, contributions(one), atol=0.15)
    raw = trained(dataclasses.replace(SMALL, standardise=False), noise=0.1, scale=1000.0)
    assert np.max(np.abs(contributions(raw) / 1000 - contributions(one))) > 0.4


def test_a_last_reward_far_from_all_others_has_a_mean_of_its_own():
    """Else most of the variance is between the two kinds of reward, and c has to wait for b."""
    last = 100 * np.eye(LENGTH, dtype=np.float32)[-1]
    far = [dataclasses.replace(e, reward=e.reward - last) for e in make_episodes(0, 32)]
    rewards = np.stack([episode.reward for episode in far])
    told = make_learner(with_replay(dataclasses.replace(SMALL, end=True), batch_size=512))
    told.learn(far)
    mean = told.state.reward_mean
    np.testing.assert_allclose(mean, [0, rewards[:, -1].mean()], rtol=0.01)
    assert told.state.reward_scale == pytest.approx(rewards[:, -1].std() / LENGTH**0.5, rel=0.2)
    untold = make_learner(with_replay(batch_size=512))
    untold.learn(far)
    np.testing.assert_allclose(untold.state.reward_mean, [rewards.mean()], rtol=0.01)
    assert untold.state.reward_scale == pytest.approx(rewards.std(), rel=0.05)


def test_what_is_explained_of_last_rewards_is_reported():
    """Noise of the size of the signal: half can be explained."""
    told = dataclasses.replace(SMALL, end=True)
    noisy = trained(told, noise=2.0, batches=40).report()
    assert 0.2 < noisy["explained_by_c"] < 0.8
    clear = trained(told, noise=0.1, batches=100).report()
    assert clear["explained_by_c"] > 0.9
    assert clear["explained_final"] > 0.9
    assert "explained_final" not in trained(SMALL, batches=1).report()


def test_thinned_episodes_share_the_credit_among_the_states_left_out():
    """Of pairs of equal states one is kept: each is worth half of what a pair is."""
    view = View(stride=2)
    learner = make_learner(steps=2 * LENGTH, view=view)
    for batch in range(60):
        learner.learn(make_episodes(batch, 16, noise=0.1))
    np.testing.assert_allclose(contributions(learner), TRUE - TRUE.mean(), atol=0.2)
    c = EpisodeExplainer(learner.state, learner.method, view).of_states(jnp.eye(KINDS))
    np.testing.assert_allclose(c - c.mean(), (TRUE - TRUE.mean()) / 2, atol=0.1)
    assert learner.buffer.max_steps == LENGTH


def test_episodes_need_not_be_saved():
    learner = trained(with_replay(save=False), batches=2)
    snapshot = learner.snapshot()
    assert "buffer" not in snapshot
    other = make_learner(with_replay(save=False, warmup=40))
    other.restore(snapshot)
    assert len(other.buffer) == 0
    updates = int(other.state.updates)
    other.learn(make_episodes(7, 20))
    assert int(other.state.updates) == updates > 0  # it gathers first
    other.learn(make_episodes(8, 20))
    assert int(other.state.updates) > updates


def test_the_cost_of_sparsity_is_for_what_is_small():
    c = jnp.array([0.01, 0.5, 3.0])
    np.testing.assert_allclose(sparsity_cost(-c), sparsity_cost(c), rtol=1e-6)
    # Near its size for a small one, and far below it for a large one.
    np.testing.assert_allclose(sparsity_cost(c[:1]), 0.01, rtol=0.1)
    assert sparsity_cost(c[2:]) < 0.4


def test_new_episodes_are_centred_as_the_model_was_trained():
    """A policy that has settled makes episodes that are all alike; centred by their own mean,
    they would say that the model predicts nothing."""
    learner = make_learner(SMALL)
    for batch in range(60):
        learner.learn(make_episodes(batch, 16))
    best = episode_of(
        np.repeat(np.eye(KINDS, dtype=np.float32)[[TRUE.argmax()]], LENGTH, axis=0),
        np.eye(LENGTH, dtype=np.float32)[-1] * TRUE.max() * (LENGTH - 1),
    )
    learner.method = with_replay(updates_per_episode=0.0)
    before = float(learner.state.evidence[1])  # the mean square of predictions
    for _ in range(100):
        learner.learn([best] * 4)
    assert float(learner.state.evidence[1]) > 2 * before
    assert float(learner.state.trust) > 0.7


def test_evidence_of_long_ago_counts_where_nothing_is_left_to_predict():
    """Episodes of a policy that makes no mistakes are alike, and say nothing about the model."""
    learner = trained(noise=0.1)
    before = float(learner.state.evidence[1])  # the mean square of predictions
    learner.method = with_replay(updates_per_episode=0.0)
    kinds = np.ones(LENGTH, int)  # a sum close to the mean of all sums
    usual = episode_of(np.eye(KINDS, dtype=np.float32)[kinds], np.eye(LENGTH, dtype=np.float32)[-1])
    for _ in range(400):
        learner.learn([usual])
    assert float(learner.state.evidence[1]) > 0.005 * before  # 0.98^400 would be 0.0003


def test_sparsity():
    """States that do not matter get no credit, and the one that does is not shrunk."""
    true = np.array([2.0, 0.0, 0.0, 0.0], np.float32)
    noise = {}
    for sparsity in (0.0, 0.3):
        options = dataclasses.replace(SMALL, sparsity=sparsity, trust=False)
        learner = trained(options, contribution=true, noise=1.0, batches=120)
        c = np.asarray(learner.method.of_states(learner.state, jnp.eye(KINDS)))
        noise[sparsity] = np.ptp(c[1:])
        assert c[0] - c[1:].mean() == pytest.approx(2, abs=0.3)
    assert noise[0.3] < 0.6 * noise[0.0]


@pytest.mark.parametrize("two_stage", [True, False])
def test_two_stage(two_stage):
    """In two stages b is fitted as if there were no c."""
    options = with_replay(
        dataclasses.replace(SMALL, gate="sigmoid", two_stage=two_stage), updates_per_episode=0.25
    )
    heads = []
    for bias in (0.0, 5.0):
        learner = make_learner(options)
        learner.state = eqx.tree_at(
            lambda s: s.model.c.layers[0].weight, learner.state, replace_fn=lambda w, b=bias: w + b
        )
        learner.learn(make_episodes(0, 4))
        heads.append(jax.tree.map(np.asarray, eqx.filter(learner.state.model.b, eqx.is_array)))
    same = all(
        np.allclose(a, b, atol=1e-6)
        for a, b in zip(jax.tree.leaves(heads[0]), jax.tree.leaves(heads[1]), strict=True)
    )
    assert same == two_stage


@pytest.mark.parametrize(
    ("steps", "expected"), [(1, [1, 2, 4]), (2, [3, 6, 4]), (3, [7, 6, 4]), (9, [7, 6, 4])]
)
def test_the_target_is_the_return_up_to_the_horizon(steps, expected):
    reward = jnp.array([[1.0], [2.0], [4.0]])
    np.testing.assert_array_equal(return_over(reward, steps)[:, 0], expected)


@pytest.mark.parametrize("horizon", [1, LENGTH])
def test_horizon(horizon):
    """b of the first state expects the reward of its step alone, or of the whole episode."""
    learner = make_learner(dataclasses.replace(SMALL, horizon=horizon, standardise=False))
    for batch in range(40):
        learner.learn(make_episodes(batch, 16, contribution=TRUE + 1))
    b = predict(learner.state.model, jnp.eye(KINDS)[None], jnp.ones((1, KINDS), bool)).b
    expected = 0 if horizon == 1 else (LENGTH - 1) * (TRUE + 1).mean()
    assert np.mean(b) == pytest.approx(expected, abs=1.5)


def updates(learner):
    return int(learner.state.updates)


def test_as_many_updates_as_the_episodes_are_worth():
    learner = make_learner(with_replay(updates_per_episode=0.4))
    for batch, total in enumerate([0, 1, 2, 2, 4]):  # 0.8, 1.6, 2.4, 2.4, 4.0 updates
        learner.learn(make_episodes(batch, [2, 2, 2, 0, 4][batch]))
        assert updates(learner) == total


def explains(learner, image):
    return learner.explain(episode_of(image, np.zeros(len(image)))).terms["r_hat"].values[:-1]


def test_the_model_may_see_a_part_of_an_image_only():
    view = View(rows=(1, 3), columns=(1, 2))
    learner = make_learner(shape=(4, 2, 1), steps=6, view=view, seed=1)
    image = np.random.default_rng(0).normal(size=(6, 4, 2, 1)).astype(np.float32)
    learner.learn([episode_of(view.crop(image), np.ones(6, np.float32))] * 4)
    assert learner.state.updates > 0
    for row, column in np.ndindex(4, 2):
        changed = image.copy()
        changed[:, row, column] += 1
        differs = np.any(
            explains(learner, view.crop(changed)) != explains(learner, view.crop(image))
        )
        assert differs == (row in (1, 2) and column == 1)


def test_the_model_may_see_changes_only():
    learner = make_learner(
        shape=(2, 2, 3), steps=6, view=View(changes=True), seed=1, dtype=np.uint8
    )
    image = np.random.default_rng(0).integers(0, 200, (6, 2, 2, 3)).astype(np.uint8)
    brighter = image + np.uint8(50)
    np.testing.assert_allclose(explains(learner, brighter), explains(learner, image), atol=1e-5)
    brighter[..., -1] = image[..., -1]
    assert np.any(np.abs(explains(learner, brighter) - explains(learner, image)) > 1e-3)
