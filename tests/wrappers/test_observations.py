"""Observations of every kind become arrays of one shape, and the encoder fits them."""

import dataclasses
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from synthetic_returns.credit.encoders import make_encoder
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.nn.networks import ConvTorso, MlpTorso
from synthetic_returns.wrappers.observations import observation_format
from synthetic_returns.wrappers.vector import SyntheticReturnsVectorWrapper
from tests.wrappers.small import METHOD

BATCH = 2
SPACES = {
    "vector": spaces.Box(-np.inf, np.inf, (4,), np.float32),
    "doubles": spaces.Box(-2.0, 2.0, (4,), np.float64),
    "board": spaces.Box(0, 1, (7, 7, 1), np.float32),
    "pixels": spaces.Box(0, 255, (84, 84, 3), np.uint8),
    "frame stack": spaces.Box(0, 255, (4, 84, 84), np.uint8),
    "grey": spaces.Box(0, 255, (40, 30), np.uint8),
    "integers": spaces.Box(0, 9, (5,), np.int64),
    "discrete": spaces.Discrete(6),
    "shifted": spaces.Discrete(6, start=-2),
}


def encoder_of(observed):
    """The encoder that a method with small layers chooses for such observations."""
    spec = EpisodeSpec(
        observation_shape=observed.shape,
        observation_dtype=observed.dtype,
        max_steps=5,
        kinds=observed.kinds,
        channels_first=observed.channels_first,
        scale=observed.scale,
        unbounded=observed.unbounded,
    )
    encoder, size = make_encoder(spec, METHOD.encoder, key=jax.random.key(0))
    assert size == 16
    encoder: Any
    return encoder


def convolves(name):
    return name in ("pixels", "frame stack", "grey")


class SpaceEnv(gymnasium.Env):
    """Shows samples of a space; episodes of three steps."""

    def __init__(self, space):
        self.observation_space, self.action_space = space, spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.time += 1
        return self.observation_space.sample(), float(self.time), self.time == 3, False, {}


@pytest.mark.parametrize("name", SPACES)
def test_an_encoder_for_every_space(name):
    space = SPACES[name]
    observed = observation_format(space, BATCH, None)
    encoder = encoder_of(observed)
    encode = jax.jit(lambda x: encoder(x))
    assert isinstance(encoder.torso, ConvTorso if convolves(name) else MlpTorso)
    batch = np.stack([space.sample() for _ in range(BATCH)])
    kept = observed(batch)
    assert kept.shape[1:] == observed.shape
    assert kept.dtype == observed.dtype
    features = jax.jit(jax.vmap(lambda x: encoder(x)))(jnp.asarray(kept))
    assert features.shape == (BATCH, 16)
    np.testing.assert_allclose(encode(jnp.asarray(kept)[None])[0], features, rtol=1e-4, atol=1e-6)


def test_numbers_are_scaled_to_one():
    for name, largest in {"pixels": 255, "doubles": 2, "integers": 9, "board": 1}.items():
        scale = observation_format(SPACES[name], BATCH, None).scale
        assert scale == pytest.approx(1 / largest)
    mixed = spaces.Box(np.array([-4, -np.inf, 0]), np.array([2, np.inf, 0]), dtype=np.float64)
    np.testing.assert_allclose(observation_format(mixed, BATCH, None).scale, [0.25, 1, 1])


def test_numbers_without_bounds_are_standardised():
    unbounded = {name for name in SPACES if observation_format(SPACES[name], BATCH, None).unbounded}
    assert unbounded == {"vector"}
    half = spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, np.inf]), dtype=np.float64)
    assert observation_format(half, BATCH, None).unbounded
    for name, kind in {"grey": np.float32, "pixels": np.uint8}.items():
        made = observation_format(SPACES[name], BATCH, lambda x, kind=kind: x.astype(kind))
        assert made.unbounded == (kind == np.float32)


def test_the_scale_is_not_learned():
    encoder = encoder_of(observation_format(SPACES["doubles"], 1, None))
    gradient = eqx.filter_grad(lambda e: jnp.sum(e(jnp.ones(4))))(encoder)
    assert not np.any(gradient.scale)
    assert np.any(gradient.torso.layers[0].weight)


def test_channels_first_and_last_are_the_same_image():
    first = observation_format(SPACES["frame stack"], 1, None)
    last = dataclasses.replace(first, shape=(84, 84, 4))
    image = np.random.default_rng(0).integers(0, 255, (1, 4, 84, 84), np.uint8)
    a = encoder_of(first)(jnp.asarray(image))
    b = encoder_of(last)(jnp.asarray(np.moveaxis(image, 1, -1)))
    np.testing.assert_allclose(a, b, rtol=1e-5)


def test_bytes_stay_bytes():
    for name in ("pixels", "frame stack", "grey"):
        assert observation_format(SPACES[name], BATCH, None).dtype == np.uint8
    flags = spaces.Box(0, 1, (3,), np.bool_)  # pyright: ignore
    assert observation_format(flags, BATCH, None).dtype == np.uint8


def test_discrete_starts_at_zero():
    observed = observation_format(SPACES["shifted"], BATCH, None)
    np.testing.assert_array_equal(observed(np.array([-2, 3])), [0, 5])


def wrap(space, **settings: Any):
    env = gymnasium.vector.SyncVectorEnv([lambda: SpaceEnv(space)] * BATCH)
    return SyntheticReturnsVectorWrapper(
        env, method=METHOD, max_episode_steps=5, learn_every=2, **settings
    )


DICT = spaces.Dict({"image": SPACES["grey"], "speed": SPACES["vector"]})


@pytest.mark.parametrize(
    ("space", "settings"),
    [
        (SPACES["grey"], {}),
        (SPACES["shifted"], {}),
        (SPACES["doubles"], {}),
        (DICT, {"observation_fn": lambda observation: observation["speed"]}),
        (DICT, {"observation_fn": lambda observation: observation["image"]}),
        (SPACES["vector"], {"encoder": eqx.nn.Lambda(lambda x: jnp.tanh(x[..., :3]))}),
    ],
    ids=["image", "discrete", "vector", "dict to vector", "dict to image", "own encoder"],
)
def test_it_learns_from_every_kind(space, settings):
    env = wrap(space, **settings)
    env.reset(seed=0)
    for _ in range(20):
        _, augmented, _, _, _ = env.step(np.zeros(BATCH, int))
        assert np.all(np.isfinite(augmented))
    assert env.report()["episodes"] == 10
    assert env.explain(env.recent_episodes()[0]).paid.shape == (4,)


def test_an_encoder_of_ones_own_is_copied():
    encoder = eqx.nn.Linear(4, 3, key=jax.random.key(1))

    class Own(eqx.Module):
        layer: eqx.nn.Linear

        def __call__(self, x):
            return x @ self.layer.weight.T

    own = Own(encoder)
    env = wrap(SPACES["vector"], encoder=own)
    env.reset(seed=0)
    for _ in range(20):
        env.step(np.zeros(BATCH, int))
    trained: Any = env.credit.driver.state.model.encoder
    assert not np.array_equal(own.layer.weight, trained.layer.weight)
