"""The definition that the benchmark compares with is the same function; ours needs less memory."""

import jax
import numpy as np

from synthetic_returns.bench import sa
from synthetic_returns.credit.paper.association import associate


def test_the_slow_pass_has_the_value_and_gradient_of_the_fast_one():
    problem = sa._problem(capacity=6, time_steps=5, batch=2)

    def fast(model, *rest):
        return associate(model, *rest).loss

    got = jax.value_and_grad(fast)(*problem)
    want = jax.value_and_grad(sa.naive_loss)(*problem)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_a_memory_of_2000_states_takes_less_than_300_mb():
    def loss(model, *rest):
        return associate(model, *rest).loss

    problem = jax.eval_shape(lambda: sa._problem(capacity=2000, time_steps=80, batch=sa.BATCH))
    compiled = jax.jit(jax.value_and_grad(loss)).lower(*problem).compile()
    assert sa._peak_mb((compiled, problem)) < 300  # of which 66 are the states themselves
