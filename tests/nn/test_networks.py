"""Networks: convolutions equal XLA's, the core forgets at first, time axes do not matter."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.nn.networks import (
    AgentNetwork,
    ConvTorso,
    LstmCore,
    LstmState,
    MlpTorso,
    make_torso,
)
from synthetic_returns.nn.settings import TorsoSettings


def key(seed=0):
    return jax.random.key(seed)


def normal(seed, *shape):
    return jax.random.normal(key(seed), shape)


@pytest.mark.parametrize(
    ("shape", "kernel", "stride"), [((7, 7, 1), 2, 1), ((5, 6, 3), 2, 1), ((17, 15, 2), 3, 2)]
)
def test_conv_torso_equals_the_convolutions_of_xla(shape, kernel, stride):
    torso = ConvTorso(shape, (4, 5), (8,), windows=[(kernel, stride)] * 2, key=key())
    images = normal(1, 3, 2, *shape)

    @eqx.filter_jit
    def both(torso, images):
        x = images.reshape(6, *shape)
        for layer in torso.convolutions:
            weight = layer.weight.reshape(-1, kernel, kernel, x.shape[-1])
            x = jax.lax.conv_general_dilated(
                x, weight, (stride, stride), "VALID", dimension_numbers=("NHWC", "OHWI", "NHWC")
            )
            x = jax.nn.relu(x + jnp.broadcast_to(layer.bias, x.shape))
        assert x.shape[1] * x.shape[2] > 1
        return torso(images), torso.head(x).reshape(3, 2, 8)

    got, want = both(torso, images)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_patches_do_not_overlap_and_bytes_are_scaled():
    torso = make_torso(
        (9, 8, 2), TorsoSettings(channels=(4, 5), patches=(4, 2), sizes=(8,)), key=key()
    )
    assert isinstance(torso, ConvTorso)
    images = jax.random.randint(key(1), (3, 9, 8, 2), 0, 256).astype(jnp.uint8)
    pixels = np.asarray(images, np.float64)[:, :8] / 255  # the ninth row fills no patch
    first, second = (
        (np.asarray(layer.weight, np.float64), np.asarray(layer.bias, np.float64))
        for layer in torso.convolutions
    )
    tiles = np.zeros((3, 2, 2, 4))
    for i in range(2):
        for j in range(2):
            patch = pixels[:, 4 * i : 4 * i + 4, 4 * j : 4 * j + 4].reshape(3, -1)
            tiles[:, i, j] = np.maximum(patch @ first[0].T + first[1], 0)
    want = np.maximum(tiles.reshape(3, -1) @ second[0].T + second[1], 0)
    for layer in torso.head.layers:
        want = np.maximum(want @ np.asarray(layer.weight).T + np.asarray(layer.bias), 0)
    np.testing.assert_allclose(torso(images), want, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"2 patches and 1 channels; give at most one"):
        TorsoSettings(channels=(4,), patches=(4, 2))


def test_mlp_torso_by_hand():
    torso = MlpTorso((2, 2), (3, 4), key=key())
    x = np.asarray(normal(1, 5, 2, 2))
    want = x.reshape(5, 4)
    for layer in torso.layers:
        want = np.maximum(want @ np.asarray(layer.weight).T + np.asarray(layer.bias), 0)
    np.testing.assert_allclose(torso(jnp.asarray(x)), want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shape", [(6,), (5, 5, 2)])
@pytest.mark.parametrize("batch", [(), (3,), (4, 3)])
def test_torsos_work_on_any_leading_axes(shape, batch):
    torso = make_torso(shape, TorsoSettings(channels=(3,), sizes=(8,)), key=key())
    assert isinstance(torso, ConvTorso) == (len(shape) == 3)
    x = normal(1, *batch, *shape)
    flat = jnp.stack([torso(row) for row in x.reshape(-1, *shape)])
    np.testing.assert_allclose(torso(x), flat.reshape(*batch, 8), rtol=1e-5, atol=1e-6)


def test_a_too_small_image_is_refused_by_its_shape():
    with pytest.raises(ValueError, match=r"\(4, 4, 1\) is too small for 3 layers.*kernel 3.*fewer"):
        ConvTorso((4, 4, 1), (8, 8, 8), (8,), windows=[(3, 2)] * 3, key=key())


@eqx.filter_jit
def call(core, *arguments):
    return core(*arguments)


def lstm_case(time=12, batch=3):
    core = LstmCore(4, 5, key=key())
    first = np.zeros((time, batch), bool)
    first[4 % time, 0] = first[2 % time, 1] = first[9 % time, 1] = True
    return core, normal(1, time, batch, 4), jnp.asarray(first)


def test_the_core_is_an_lstm():
    """One step by hand, in the usual notation, with the forget gate's bias of 1."""
    core, x, _ = lstm_case(1, 3)
    state = LstmState(normal(2, 3, 5), normal(3, 3, 5))
    hidden, after = call(core, x, jnp.zeros((1, 3), bool), state)
    w_x, b, w_h = map(
        np.asarray, (core.from_input.weight, core.from_input.bias, core.from_hidden.weight)
    )
    i, f, g, o = np.split(np.asarray(x)[0] @ w_x.T + b + np.asarray(state.hidden) @ w_h.T, 4, -1)

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    cell = sigmoid(f + 1) * np.asarray(state.cell) + sigmoid(i) * np.tanh(g)
    np.testing.assert_allclose(after.cell, cell, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(hidden[0], sigmoid(o) * np.tanh(cell), rtol=1e-4, atol=1e-5)


def test_two_episodes_in_one_call_equal_two_calls():
    core, x, _ = lstm_case(9, 3)
    first = jnp.zeros((9, 3), bool).at[4].set(True)
    state = LstmState(normal(2, 3, 5), normal(3, 3, 5))
    both, after = call(core, x, first, state)
    one, _ = call(core, x[:4], first[:4], state)
    two, after_two = call(core, x[4:], jnp.zeros((5, 3), bool), core.initial_state(3))
    assert (len(one), len(two)) == (4, 5)
    np.testing.assert_allclose(both, jnp.concatenate([one, two]), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(after.cell, after_two.cell, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("length", [5, 1])
def test_one_unroll_of_20_equals_many_short_ones(length):
    core, x, first = lstm_case(20, 3)
    assert 0 < first.sum() < 20
    whole, after_whole = call(core, x, first, core.initial_state(3))
    state, parts = core.initial_state(3), []
    for start in range(0, 20, length):
        steps = slice(start, start + length)
        part, state = call(core, x[steps], first[steps], state)
        parts.append(part)
    np.testing.assert_allclose(jnp.concatenate(parts), whole, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state.cell, after_whole.cell, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("lstm_size", "clock"), [(0, 0), (6, 0), (0, 12)])
def test_learning_on_time_and_batch_equals_acting_step_by_step(lstm_size, clock):
    torso = make_torso((5, 5, 2), TorsoSettings(channels=(3,), sizes=(8,)), key=key())
    network = AgentNetwork(
        torso,
        8,
        lstm_size=lstm_size,
        max_episode_steps=clock,
        policy_size=7,
        num_actions=4,
        key=key(1),
    )
    _, _, first = lstm_case(12, 3)
    images = normal(2, 12, 3, 5, 5, 2)

    @eqx.filter_jit
    def act(network, images, first, state):
        hidden, state = network.recur(network.torso(images), first, state)
        return *network.heads(hidden), state

    logits, value, _ = act(network, images, first, network.initial_state(3))
    assert (logits.shape, value.shape) == ((12, 3, 4), (12, 3))
    state = network.initial_state(3)
    assert (state is None) == (lstm_size == clock == 0)
    for t in range(12):
        now = slice(t, t + 1)
        step_logits, step_value, state = act(network, images[now], first[now], state)
        np.testing.assert_allclose(step_logits, logits[now], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(step_value, value[now], rtol=1e-4, atol=1e-5)
