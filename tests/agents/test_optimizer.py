"""Where epsilon stands in each optimiser, to the last digit, and when gradients are clipped."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.agents.impala.learner import Learner
from synthetic_returns.agents.optimizer_settings import AdamSettings, RMSPropSettings
from synthetic_returns.agents.optimizers import (
    GETTING_TO_KNOW,
    UNSETTLED,
    adam,
    clip_unusual,
    steady_adam,
)
from synthetic_returns.presets import preset
from synthetic_returns.utils.packed import Packed

PAPER = preset("chain", "paper")


def steps(config, gradients):
    """The updates that gradients of one parameter lead to."""
    return steps_of(Learner(config).optimizer, gradients)


def steps_of(optimizer, gradients):
    """All in one computation: some are thousands."""

    def step(state, gradient):
        update, state = optimizer.update(gradient, state)
        return state, update

    run = jax.jit(lambda gradients: jax.lax.scan(step, optimizer.init(jnp.zeros(())), gradients))
    return np.asarray(run(jnp.asarray(gradients, jnp.float32))[1])


def test_the_paper_uses_rmsprop_without_momentum():
    assert PAPER.optimizer == RMSPropSettings(learning_rate=4e-4, epsilon=1e-4, decay=0.99)


def test_rmsprop_has_epsilon_inside_the_root():
    """nu = 0.99 nu + 0.01 g^2, update = -lr g / sqrt(nu + eps), from nu = 0.

    g = 0.1: nu = 1e-4, update = -1 * 0.1 / sqrt(2e-4) = -7.0710678; outside the root it would be
    -0.1 / (0.01 + 0.0001) = -9.90. g = 0.2: nu = 0.99e-4 + 4e-4 = 4.99e-4, update =
    -0.2 / sqrt(5.99e-4) = -8.1718011.
    """
    config = PAPER.changed({"optimizer.learning_rate": 1.0})
    np.testing.assert_allclose(steps(config, [0.1, 0.2]), [-7.0710678, -8.1718011], rtol=1e-5)


def test_adam_has_epsilon_outside_the_root():
    """With both biases corrected, the first step is -lr g / (|g| + eps).

    g = 0.1, eps = 0.1: -0.1 / 0.2 = -0.5; inside the root it would be -0.1 / sqrt(0.11) = -0.30.
    g = 0.3 next: mean = (0.9 * 0.1 * 0.1 + 0.1 * 0.3) / (1 - 0.81) = 0.039 / 0.19 = 0.205263,
    square = (0.999 * 0.001 * 0.01 + 0.001 * 0.09) / (1 - 0.998001) = 9.999e-5 / 1.999e-3 =
    0.0500200, update = -0.205263 / (0.223652 + 0.1) = -0.634210.
    """
    config = PAPER.changed(optimizer=AdamSettings(learning_rate=1.0, epsilon=0.1))
    np.testing.assert_allclose(steps(config, [0.1, 0.3]), [-0.5, -0.634210], rtol=1e-5)


def test_learning_rate_scales_the_step():
    config = PAPER.changed({"optimizer.learning_rate": 1e-3})
    np.testing.assert_allclose(steps(config, [0.1]), [-7.0710678e-3], rtol=1e-5)


def test_annealing_ends_at_zero():
    """4 updates of 32 x 20 steps: the step falls by a quarter of the first each time."""
    config = PAPER.changed(
        optimizer=RMSPropSettings(learning_rate=1.0, anneal=True, decay=0.0, epsilon=0.0),
        steps=4 * 32 * 20,
    )
    np.testing.assert_allclose(steps(config, [1.0] * 5), [-1, -0.75, -0.5, -0.25, 0], rtol=1e-6)


@pytest.mark.parametrize(("limit", "seen"), [(40.0, 5.0), (2.5, 2.5)])
def test_gradients_are_clipped_by_their_common_norm(limit, seen):
    """A gradient (3, 4) has norm 5; with epsilon 0 RMSProp would hide its size, so eps is huge."""
    config = PAPER.changed(
        optimizer=RMSPropSettings(max_grad_norm=limit, epsilon=1e8, learning_rate=1e4)
    )
    optimizer = Learner(config).optimizer
    gradient = {"a": jnp.array([3.0]), "b": jnp.array(4.0)}
    update: Any = optimizer.update(gradient, optimizer.init(gradient))[0]
    got = np.array([update["a"][0], update["b"]])  # -lr / sqrt(eps) = -1 times the gradient
    np.testing.assert_allclose(got, -np.array([3, 4]) * seen / 5, rtol=1e-5)


def test_steady_adam_makes_small_steps_where_gradients_have_become_small():
    """Gradients of size 1, then of 0.01: Adam's own steps would be as large as before, once its
    mean square has forgotten the large ones."""
    sizes = np.where(np.arange(9_000) < 2_000, 1.0, 0.01)
    np.testing.assert_allclose(steps_of(steady_adam(1.0), sizes)[-1], -0.01, rtol=0.1)
    assert steps_of(adam(1.0), sizes)[-1] < -0.3


def test_steady_adam_forgets_the_gradients_of_the_beginning():
    """Ten gradients of size 100 and then ones of size 1; AMSGrad would keep to steps of 0.01."""
    sizes = np.where(np.arange(9_000) < 10, 100.0, 1.0)
    assert steps_of(steady_adam(1.0), sizes)[-1] < -0.1


def test_steady_adam_is_adam_while_gradients_are_alike():
    np.testing.assert_allclose(steps_of(steady_adam(1.0), [0.1] * 3), -np.ones(3), rtol=1e-4)


def test_weights_decay_only_as_far_as_steps_are_made():
    """Where gradients have become small nothing is relearned, and nothing may be forgotten."""
    optimizer = steady_adam(1e-3, significance=100.0)
    layer: Any = Packed.of(jax.tree.map(jnp.ones_like, eqx.nn.Linear(1, 1, key=jax.random.key(0))))
    update = jax.jit(optimizer.update)

    def last_step(size: float, updates: int, state: Any) -> tuple[Any, Any]:
        grads = jax.tree.map(lambda x: jnp.full_like(x, size), layer)
        step: Any = None
        for _ in range(updates):
            step, state = update(grads, state, layer)
        return step, state

    step, state = last_step(1.0, UNSETTLED + 10, optimizer.init(layer))
    large, small = step.opened(), last_step(1e-4, 4_000, state)[0].opened()
    # An Adam step of 1e-3 and as much decay; the bias has none.
    assert float(large.weight[0, 0]) == pytest.approx(-2e-3, rel=0.05)
    assert float(large.bias[0]) == pytest.approx(-1e-3, rel=0.05)
    assert abs(float(small.weight[0, 0])) < 0.4 * abs(float(large.weight[0, 0]))


def test_weights_stand_for_what_is_significant():
    """Rare gradients hold no weight at first; but what keeps coming becomes significant."""
    optimizer = steady_adam(1e-2, significance=4.0)
    layer: Any = Packed.of(jax.tree.map(jnp.zeros_like, eqx.nn.Linear(1, 1, key=jax.random.key(0))))
    rng = np.random.default_rng(0)
    gradients = {"rare": np.where(rng.random(40_000) < 0.02, -1.0, 0.0)}
    gradients["luck"] = rng.permutation(np.where(rng.random(40_000) < 0.5, -0.1, 0.1))

    @jax.jit
    def weights(sizes: Any) -> Any:
        def step(carry: Any, size: Any) -> Any:
            layer, state = carry
            grads = jax.tree.map(lambda x: jnp.full_like(x, size), layer)
            # What a weight explains is no longer in its gradient.
            grads = jax.tree.map(lambda g, w: g + jnp.abs(size) * w, grads, layer)
            change, state = optimizer.update(grads, state, layer)
            layer = eqx.apply_updates(layer, change)
            return (layer, state), layer.opened().weight[0, 0]

        return jax.lax.scan(step, (layer, optimizer.init(layer)), sizes)[1]

    rare, luck = (np.asarray(weights(jnp.float32(x))) for x in gradients.values())
    assert rare[300:600].mean() < 0.5
    assert rare[-4_000:].mean() > 0.8
    assert np.abs(luck[-4_000:]).mean() < 0.2


def clipped(sizes: Any) -> list[float]:
    """What is left of gradients of these sizes."""
    clip: Any = clip_unusual(3.0)
    update = jax.jit(clip.update)
    arrays: Any = Packed.of({"huge": jnp.full(100, 1e3), "x": jnp.zeros(4)})
    state, left = clip.init(arrays), []
    for size in sizes:
        gradient = arrays.like({"huge": jnp.full(100, 1e3), "x": jnp.full(4, size)})
        gradient, state = update(gradient, state)
        left.append(float(gradient.opened()["x"][0]))
    return left


def test_a_gradient_that_is_unusual_is_cut():
    """At most three times the usual size counts."""
    *_, outlier, after = clipped([0.1] * GETTING_TO_KNOW + [2.0, 0.1])
    assert outlier == pytest.approx(0.3, rel=1e-3)
    assert after == pytest.approx(0.1)


def test_nothing_is_unusual_at_first_or_when_gradients_grow():
    """A model that is silent at first has no gradients at all below its heads."""
    silent = clipped([0.0] * 5 + [1.0] * 5)
    np.testing.assert_allclose(silent[5:], 1.0)
    late = clipped([0.0] * 2 * GETTING_TO_KNOW + [1.0] * 200)
    assert late[-1] == pytest.approx(1.0)
    assert sum(late) > 100
