"""V-trace against the sums of the IMPALA paper, against rlax, and its two zeros."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.agents.impala.vtrace import vtrace

CLIPS: dict[str, Any] = {"clip_rho": 1.1, "clip_c": 0.9, "clip_pg_rho": 1.4}


def make_inputs(seed, time, batch):
    """Ratios on both sides of every clip, some discounts 0, some ratios 0."""
    rng = np.random.default_rng(seed)
    shape = (time, batch)
    rho = np.exp(rng.uniform(-1.5, 1.5, shape))
    return {
        "v_tm1": rng.normal(size=shape),
        "v_t": rng.normal(size=shape),
        "r_t": rng.normal(size=shape),
        "discount_t": np.where(rng.random(shape) < 0.2, 0, rng.uniform(0.5, 1, shape)),
        "rho_tm1": np.where(rng.random(shape) < 0.1, 0, rho),
    }


def to_jax(inputs) -> dict[str, Any]:
    return {name: jnp.asarray(x, jnp.float32) for name, x in inputs.items()}


def oracle(v_tm1, v_t, r_t, discount_t, rho_tm1, lambda_, clip_rho, clip_c, clip_pg_rho):
    """Espeholt et al. (2018), Eq. (1) and section 4.2, on one stream.

    ``v_s = V(x_s) + sum_{t >= s} (prod_{i=s}^{t-1} gamma_i c_i) delta_t V`` with
    ``c_i = lambda min(c_bar, rho_i)`` and
    ``delta_t V = min(rho_bar, rho_t) (r_t + gamma_t V(x_{t+1}) - V(x_t))``. Here ``x_{t+1}`` has a
    value of its own, because it need not be the source of the next step.
    """
    n = len(r_t)
    v = np.zeros(n)
    for s in range(n):
        v[s] = v_tm1[s]
        for t in range(s, n):
            trace = 1.0
            for i in range(s, t):
                trace *= discount_t[i] * lambda_ * min(clip_c, rho_tm1[i])
            delta = min(clip_rho, rho_tm1[t]) * (r_t[t] + discount_t[t] * v_t[t] - v_tm1[t])
            v[s] += trace * delta
    advantage = np.zeros(n)
    for s in range(n):
        # What follows x_{s+1}, by the targets of the later steps.
        error = v[s + 1] - v_tm1[s + 1] if s + 1 < n else 0.0
        q = r_t[s] + discount_t[s] * (v_t[s] + lambda_ * error)
        advantage[s] = min(clip_pg_rho, rho_tm1[s]) * (q - v_tm1[s])
    return v, advantage


@pytest.mark.parametrize("lambda_", [1.0, 0.8])
@pytest.mark.parametrize("time", [1, 7])
@pytest.mark.parametrize("batch", [1, 5])
def test_equals_the_sums_of_the_paper(batch, time, lambda_):
    inputs = make_inputs(batch + time, time, batch)
    got = vtrace(**to_jax(inputs), lambda_=lambda_, **CLIPS)
    for row in range(batch):
        stream = {name: x[:, row] for name, x in inputs.items()}
        target, advantage = oracle(**stream, lambda_=lambda_, **CLIPS)
        np.testing.assert_allclose(got.target_tm1[:, row], target, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got.advantage_tm1[:, row], advantage, rtol=1e-4, atol=1e-5)


def test_the_inputs_cross_every_clip():
    rho = np.concatenate([make_inputs(b + 7, 7, b)["rho_tm1"].ravel() for b in (1, 5)])
    for bound in CLIPS.values():
        assert np.sum(rho < bound) > 3
        assert np.sum(rho > bound) > 3


@pytest.mark.parametrize("lambda_", [1.0, 0.8])
def test_equals_rlax(lambda_):
    rlax = pytest.importorskip("rlax")
    inputs = to_jax(make_inputs(3, 7, 5))
    # rlax clips traces at 1, and takes the values of destinations from the next step's source.
    inputs["v_t"] = jnp.concatenate([inputs["v_tm1"][1:], inputs["v_t"][-1:]])
    got = vtrace(**inputs, lambda_=lambda_, clip_rho=1.1, clip_c=1.0, clip_pg_rho=1.4)
    for row in range(5):
        stream = {name: x[:, row] for name, x in inputs.items()}
        with jax.numpy_dtype_promotion("standard"):
            want = rlax.vtrace_td_error_and_advantage(
                **stream, lambda_=lambda_, clip_rho_threshold=1.1, clip_pg_rho_threshold=1.4
            )
        errors = want.errors + stream["v_tm1"]
        np.testing.assert_allclose(got.target_tm1[:, row], errors, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            got.advantage_tm1[:, row], want.pg_advantage, rtol=1e-4, atol=1e-5
        )


def test_golden():
    """By hand, on policy, lambda 1: the targets are discounted returns with a bootstrap.

    r = [1, 2], discount = [0.5, 0.5], v_t = [3, 4]; the last target is 2 + 0.5 * 4 = 4, the first
    1 + 0.5 * 4 = 3; the values 1 and 3 are subtracted for the advantages.
    """
    got = vtrace(
        v_tm1=jnp.array([[1.0], [3.0]]),
        v_t=jnp.array([[3.0], [4.0]]),
        r_t=jnp.array([[1.0], [2.0]]),
        discount_t=jnp.full((2, 1), 0.5),
        rho_tm1=jnp.ones((2, 1)),
    )
    np.testing.assert_array_equal(got.target_tm1[:, 0], [4 / 2 + 1, 4])
    np.testing.assert_array_equal(got.advantage_tm1[:, 0], [2, 1])


def test_a_ratio_of_zero_leaves_the_transition_out():
    """Whatever stands in it and behind it, the steps before see the same, and it learns nothing."""
    inputs = make_inputs(4, 7, 5)
    inputs["rho_tm1"][3] = 0
    inputs["v_tm1"][3] = inputs["v_t"][2]  # the source of step 3 is the destination of step 2
    changed = {name: x.copy() for name, x in inputs.items()}
    changed["r_t"][3:] += 100
    changed["v_t"][3:] -= 50
    changed["discount_t"][3] = 0.3
    before, after = vtrace(**to_jax(inputs)), vtrace(**to_jax(changed))
    np.testing.assert_array_equal(before.target_tm1[:4], after.target_tm1[:4])
    np.testing.assert_array_equal(before.advantage_tm1[:4], after.advantage_tm1[:4])
    np.testing.assert_array_equal(after.target_tm1[3], to_jax(inputs)["v_tm1"][3])
    assert not np.any(after.advantage_tm1[3])
    assert np.any(before.target_tm1[4:] != after.target_tm1[4:])


def test_nothing_is_differentiated():
    inputs = to_jax(make_inputs(5, 7, 5))

    def total(v_tm1, v_t, rho_tm1):
        result = vtrace(**inputs | {"v_tm1": v_tm1, "v_t": v_t, "rho_tm1": rho_tm1})
        return jnp.sum(result.target_tm1) + jnp.sum(result.advantage_tm1)

    arguments = (inputs["v_tm1"], inputs["v_t"], inputs["rho_tm1"])
    for gradient in jax.grad(total, (0, 1, 2))(*arguments):
        assert not np.any(gradient)
