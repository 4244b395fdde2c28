"""The episodic model: what c, g, b and the memory see, and what each choice changes."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.episodic.method import Episodic
from tests.credit.known_contributions import (
    KINDS,
    LENGTH,
    SMALL,
    make_episodes,
    make_learner,
    make_model,
    predict,
    trained,
)


def make_batch(seed=0, batch=3):
    rng = np.random.default_rng(seed)
    observation = jnp.asarray(rng.normal(size=(LENGTH, batch, KINDS)), jnp.float32)
    length = rng.integers(LENGTH // 2, LENGTH + 1, batch)
    return observation, jnp.asarray(np.arange(LENGTH)[:, None] < length)


def memory_gradient(model):
    """Of the sum of what the memory predicts."""
    observation, valid = make_batch()

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(model):
        memory = model.predict(observation, valid, jnp.ones(())).memory
        return jnp.sum(jnp.square(memory - 1))

    return gradient(model)


def any_gradient(tree):
    return any(np.any(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array)))


def test_the_gate_opens_where_the_reward_is_uncertain():
    learner = trained(noise=0.5)
    episodes = list(make_episodes(1000, 20))
    observation = jnp.asarray(np.stack([e.observation[:-1] for e in episodes], axis=1))
    state = learner.state
    valid = jnp.ones(observation.shape[:2], bool)
    g = state.model.predict(observation, valid, state.gate_scale).g
    assert np.mean(g[-1]) > 0.7
    assert np.mean(g[:-1]) < 0.1


def test_the_gate_may_open_at_the_end_only():
    observation, _ = make_batch()
    length = np.array([LENGTH, 5, 3])
    valid = jnp.asarray(np.arange(LENGTH)[:, None] < length)
    g = predict(make_model(gate="end"), observation, valid).g
    np.testing.assert_array_equal(g, np.arange(LENGTH)[:, None] == length - 1)


def test_g_and_b_may_see_the_time_alone_and_the_end():
    (observation, _), (other, _) = make_batch(0), make_batch(1)
    valid = jnp.asarray(np.arange(LENGTH)[:, None] < np.array([LENGTH, 5, 3]))
    blind, seeing = make_model(current="time", end=True), make_model(end=True)
    one, two = (predict(blind, x, valid) for x in (observation, other))
    for name in ("b", "variance"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert np.any(one.c != two.c)
    # The same time in another episode: told apart only where one of them ends.
    np.testing.assert_array_equal(one.b[:2, 0], one.b[:2, 2])
    assert one.b[2, 0] != one.b[2, 2]
    assert one.b[4, 0] != one.b[4, 1]
    assert np.any(predict(seeing, observation, valid).b != predict(seeing, other, valid).b)
    with pytest.raises(ValueError, match=r"current is 'time' and time_features is False"):
        make_model(current="time", time_features=False)


@pytest.mark.parametrize("two_stage", [True, False])
def test_the_memory_is_the_gated_sum_over_earlier_states(two_stage):
    model = make_model(centred=False, time_features=False, gate="sigmoid", two_stage=two_stage)
    observation, valid = make_batch()
    got = predict(model, observation, valid)
    c = np.asarray(model.contribution(observation), np.float64)
    current = model.encoder(observation)
    g = np.asarray(jax.nn.sigmoid(model.g(current)))
    origin = np.asarray(model.offset(current)) if two_stage else np.zeros_like(g)
    for t in range(LENGTH):
        want = g[t] * ((c * np.asarray(valid))[:t].sum(axis=0) - origin[t])
        rows = np.asarray(valid[t])
        np.testing.assert_allclose(got.memory[t][rows], want[rows], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("centred", [True, False])
def test_centred(centred):
    observation, valid = make_batch()
    model = make_model(centred=centred)
    prediction = predict(model, observation, valid)
    mean = np.asarray(prediction.c)[np.asarray(valid)].mean()
    assert (abs(mean) < 1e-5) == centred
    learner = make_learner(dataclasses.replace(SMALL, centred=centred, trust=False))
    moved = eqx.tree_at(lambda s: s.c_rest, learner.state, jnp.array(7.0))
    shift = learner.state.contribution(observation) - moved.contribution(observation)
    np.testing.assert_allclose(shift, 7 * learner.state.reward_scale if centred else 0, rtol=1e-4)


@pytest.mark.parametrize("encoder_gradient", [True, False])
def test_encoder_gradient(encoder_gradient):
    gradient = memory_gradient(make_model(encoder_gradient=encoder_gradient))
    assert any_gradient(gradient.encoder) == encoder_gradient
    assert any_gradient(gradient.c)


@pytest.mark.parametrize("gate", ["sigmoid", "variance"])
def test_gate(gate):
    """The sigmoid gate learns from the memory's error; the variance gate only from b's."""
    gradient = memory_gradient(make_model(gate=gate))
    assert any_gradient(gradient.g) == (gate == "sigmoid")
    observation, valid = make_batch()
    g = predict(make_model(gate=gate), observation, valid).g
    assert np.all((g >= 0) & (g <= 1))


@pytest.mark.parametrize("time_features", [True, False])
def test_time_features(time_features):
    """Told the time, b and g change while the state does not; c never knows it."""
    observation = jnp.ones((LENGTH, 1, KINDS))
    model = make_model(time_features=time_features)
    got = predict(model, observation, jnp.ones((LENGTH, 1), bool))
    for output in (got.b, got.variance):
        distinct = len(np.unique(np.round(output, 5)))
        assert distinct == (LENGTH if time_features else 1)
    assert len(np.unique(np.round(got.c, 5))) == 1


def test_padding_teaches_nothing():
    """Short episodes beside long ones: what stands behind their end has no effect."""
    model = make_model()
    observation, valid = make_batch()
    assert not np.all(valid)
    junk = jnp.where(valid[..., None], observation, 9.0)
    one, two = predict(model, observation, valid), predict(model, junk, valid)
    for name in ("c", "b", "memory"):
        a, b = (np.asarray(getattr(x, name))[np.asarray(valid)] for x in (one, two))
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert one.c_mean == pytest.approx(float(two.c_mean), rel=1e-5)


def test_a_variance_gate_in_one_stage_is_refused():
    with pytest.raises(ValueError, match=r"variance.*two_stage is False.*use gate 'sigmoid'"):
        Episodic(two_stage=False)
