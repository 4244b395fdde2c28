"""Images are encoded a part at a time: the same features and gradients, in less memory."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit import encoders
from synthetic_returns.credit.encoders import make_encoder
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.nn.settings import TorsoSettings

SHAPE = (24, 20, 2)
SETTINGS = TorsoSettings(channels=(8, 8), patches=(4, 2), sizes=(16,))
STATES = (37, 3)  # no multiple of a part


def make(settings=SETTINGS, **known):
    spec = EpisodeSpec(SHAPE, np.dtype(np.uint8), 50, **known)
    return make_encoder(spec, settings, key=jax.random.key(0))[0]


def images(*batch):
    return jnp.asarray(np.random.default_rng(1).integers(0, 256, (*batch, *SHAPE), dtype=np.uint8))


def loss_of(encoder, x):
    return jnp.sum(jnp.square(encoder(x)))


def in_parts(monkeypatch, states):
    monkeypatch.setattr(encoders, "AT_ONCE", states * 24 * 20 * 2)


@pytest.mark.parametrize("states", [1, 10, 111])
def test_parts_make_the_same_features_and_gradients(states, monkeypatch):
    encoder, x = make(scale=np.full(SHAPE, 1 / 255, np.float32)), images(*STATES)
    want = encoder(x), eqx.filter_grad(loss_of)(encoder, x)
    in_parts(monkeypatch, states)
    got = encoder(x), eqx.filter_grad(loss_of)(encoder, x)
    assert got[0].shape == (*STATES, 16)
    assert np.any(want[0] != 0)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), got, want)
    np.testing.assert_allclose(encoder(x[0, 0]), want[0][0, 0], rtol=1e-4, atol=1e-5)


def temporary_bytes(encoder, x):
    arrays, rest = eqx.partition(encoder, eqx.is_array)

    def gradient(arrays, x):
        return jax.grad(lambda a: loss_of(eqx.combine(a, rest), x))(arrays)

    needed = jax.jit(gradient).lower(arrays, x).compile().memory_analysis()
    assert needed is not None
    return needed.temp_size_in_bytes


def test_many_images_take_little_more_memory_than_a_part_of_them(monkeypatch):
    encoder, x = make(), images(400, 4)
    whole = temporary_bytes(encoder, x)
    assert whole > 4 * x.nbytes
    in_parts(monkeypatch, 40)
    assert temporary_bytes(encoder, x) < whole / 4


def test_convolutions_that_overlap_are_not_put_into_a_loop(monkeypatch):
    """There they would be many times slower."""
    settings = TorsoSettings(channels=(8, 8), kernel=3, stride=2, sizes=(16,))
    in_parts(monkeypatch, 10)
    for chosen, loops in ((settings, False), (SETTINGS, True)):
        encoder = make(chosen)
        program = str(eqx.filter_make_jaxpr(encoder)(images(*STATES))[0])
        assert ("scan" in program) == loops
