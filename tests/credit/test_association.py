"""The fast pass against the loop oracle, its invariances and its stop-gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.paper.association import associate
from synthetic_returns.credit.paper.memory import EpisodicMemory, remember
from synthetic_returns.credit.paper.sa_model import StateAssociativeModel
from tests.credit.oracle import oracle

PAST, CURRENT = 3, 4

compiled = eqx.filter_jit(associate)  # a program for every operation would take far longer


def make_model(seed=0, current=CURRENT):
    model = StateAssociativeModel(
        PAST,
        current,
        contribution_layers=(5, 5),
        gate_layers=(5,),
        baseline_layers=(5, 5),
        key=jax.random.key(seed),
    )
    return jax.tree.map(lambda x: 2 * x, model)  # far enough from linear to tell sums apart


def make_unroll(seed, time, batch, first_rate=0.2):
    rng = np.random.default_rng(seed)
    return {
        "features": rng.normal(size=(time, batch, PAST)).astype(np.float32),
        "first": rng.random((time, batch)) < first_rate,
        "reward": rng.normal(size=(time, batch)).astype(np.float32),
        "current": rng.normal(size=(time, batch, CURRENT)).astype(np.float32),
        "valid": rng.random((time, batch)) < 0.8,
    }


def fast(model, memory, unroll, **kwargs):
    arrays = jax.tree.map(jnp.asarray, unroll)
    return compiled(
        model,
        memory,
        arrays["features"],
        arrays["first"],
        arrays["reward"],
        current=arrays["current"],
        valid=arrays["valid"],
        **kwargs,
    )


def chronological(memory):
    """The stored states of each row, oldest first."""
    rows = []
    for states, steps in zip(np.asarray(memory.states), np.asarray(memory.steps), strict=True):
        kept = range(max(0, steps - memory.capacity), steps)
        rows.append([states[n % memory.capacity] for n in kept])
    return rows


@pytest.mark.parametrize(
    ("batch", "time", "capacity", "two_stage"),
    [
        (5, 7, 1, False),
        (5, 7, 3, False),
        (5, 7, 3, True),
        (5, 7, 50, False),
        (1, 1, 1, True),
        (1, 7, 50, True),
        (5, 1, 3, False),
    ],
)
def test_equals_the_loop_oracle(batch, time, capacity, two_stage):
    model = make_model()
    history = make_unroll(1, 6, batch)
    unroll = make_unroll(2, time, batch)
    memory = EpisodicMemory.empty(batch, capacity, PAST)
    memory = jax.jit(remember)(memory, *map(jnp.asarray, (history["features"], history["first"])))
    assert np.max(memory.steps) > 1

    def fast_loss(model, current):
        result = fast(model, memory, unroll | {"current": current}, two_stage=two_stage)
        return result.loss, result

    current = jnp.asarray(unroll["current"])
    (loss, result), grads = jax.jit(jax.value_and_grad(fast_loss, (0, 1), has_aux=True))(
        model, current
    )

    with jax.enable_x64(True):

        def to_64(tree):
            return jax.tree.map(lambda x: jnp.asarray(np.asarray(x), jnp.float64), tree)

        def slow_loss(model, current):
            return oracle(
                model,
                to_64(chronological(memory)),
                to_64(unroll["features"]),
                unroll["first"],
                unroll["reward"].astype(np.float64),
                current,
                unroll["valid"],
                capacity,
                two_stage,
            )

        (slow, (slow_r_hat, slow_memory)), slow_grads = jax.value_and_grad(
            slow_loss, (0, 1), has_aux=True
        )(to_64(model), to_64(current))
        slow, slow_r_hat, slow_grads = jax.tree.map(np.asarray, (slow, slow_r_hat, slow_grads))

    np.testing.assert_allclose(loss, slow, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(result.r_hat, slow_r_hat, rtol=2e-4, atol=2e-5)
    for got, want in zip(jax.tree.leaves(grads), jax.tree.leaves(slow_grads), strict=True):
        np.testing.assert_allclose(got, want, rtol=5e-4, atol=5e-5)
    for got, want in zip(chronological(result.memory), slow_memory, strict=True):
        np.testing.assert_array_equal(np.array(got), np.array(want, np.float32))


@pytest.mark.parametrize("capacity", [4, 50])
def test_one_unroll_of_20_equals_four_of_5(capacity):
    model = make_model()
    unroll = make_unroll(3, 20, 5, first_rate=0.1)
    assert 0 < unroll["first"].sum() < 20
    empty = EpisodicMemory.empty(5, capacity, PAST)
    whole = fast(model, empty, unroll)
    memory, parts = empty, []
    for start in range(0, 20, 5):
        part = fast(model, memory, jax.tree.map(lambda x, s=start: x[s : s + 5], unroll))
        memory = part.memory
        parts.append(part.r_hat)
    np.testing.assert_allclose(jnp.concatenate(parts), whole.r_hat, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(memory.steps, whole.memory.steps)
    for got, want in zip(chronological(memory), chronological(whole.memory), strict=True):
        np.testing.assert_array_equal(np.array(got), np.array(want))


def test_two_episodes_in_one_unroll_equal_two_calls():
    model = make_model()
    unroll = make_unroll(4, 9, 2, first_rate=0)
    unroll["first"][[0, 4]] = True
    empty = EpisodicMemory.empty(2, 10, PAST)
    both = fast(model, empty, unroll).r_hat
    one = fast(model, empty, jax.tree.map(lambda x: x[:4], unroll)).r_hat
    two = fast(model, empty, jax.tree.map(lambda x: x[4:], unroll)).r_hat
    assert one.shape[0] == 4
    assert two.shape[0] == 5
    np.testing.assert_allclose(both, jnp.concatenate([one, two]), rtol=1e-4, atol=1e-5)


def test_golden_three_steps_two_episodes():
    """With c = s, g = 1, b = 0: s = [1, 2, | 4, 8], episode 2 starts at t = 2: sums 0, 1, 0, 4."""

    class Identity(eqx.Module):
        def contribution(self, past):
            return past[..., 0]

        def gate(self, current):
            return jnp.ones(current.shape[:-1])

        def baseline(self, current):
            return jnp.zeros(current.shape[:-1])

    result = compiled(
        Identity(),
        EpisodicMemory.empty(1, 5, 1),
        jnp.array([1.0, 2, 4, 8]).reshape(4, 1, 1),
        jnp.array([True, False, True, False])[:, None],
        jnp.zeros((4, 1)),
    )
    np.testing.assert_array_equal(result.c_sum_tm1[:, 0], [0, 1, 0, 4])
    assert result.loss == (1 + 16) / 4
    np.testing.assert_array_equal(result.memory.states[0, :, 0], [4, 8, 0, 0, 0])
    assert result.memory.steps[0] == 2


def test_features_get_no_gradient_through_c():
    model = make_model()
    unroll = make_unroll(5, 7, 3)
    memory = EpisodicMemory.empty(3, 10, PAST)

    def loss(features, memory):
        result = fast(model, memory, unroll | {"features": features})
        return result.loss + jnp.sum(result.memory.states) + jnp.sum(result.c_t)

    grads = jax.grad(loss, (0, 1), allow_int=True)(jnp.asarray(unroll["features"]), memory)
    assert not np.any(grads[0])
    assert not np.any(np.asarray(grads[1].states)[np.asarray(memory.steps) > 0])


def test_synthetic_returns_are_detached():
    unroll = make_unroll(6, 7, 3)
    memory = EpisodicMemory.empty(3, 10, PAST)
    grads = jax.grad(lambda model: jnp.sum(fast(model, memory, unroll).c_t))(make_model())
    assert not any(np.any(g) for g in jax.tree.leaves(grads))


def test_second_stage_leaves_the_baseline_alone():
    """In the two-stage loss b is fitted as if there were no memory."""
    unroll = make_unroll(7, 7, 3)
    memory = EpisodicMemory.empty(3, 10, PAST)

    def loss(model):
        return fast(model, memory, unroll, two_stage=True).loss

    def first_stage(model):
        b = model.baseline(jnp.asarray(unroll["current"]))
        error = jnp.where(unroll["valid"], jnp.square(unroll["reward"] - b), 0)
        return jnp.sum(error) / np.float32(unroll["valid"].sum())

    got, want = jax.grad(loss)(make_model()), jax.grad(first_stage)(make_model())
    for a, b in zip(jax.tree.leaves(got.b), jax.tree.leaves(want.b), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert any(np.any(g) for g in jax.tree.leaves(got.c))


def test_current_and_past_may_be_the_same():
    model = make_model(current=PAST)
    unroll = make_unroll(8, 7, 3)
    unroll["current"] = unroll["features"]
    memory = EpisodicMemory.empty(3, 10, PAST)
    explicit = fast(model, memory, unroll)
    arrays = jax.tree.map(jnp.asarray, unroll)
    implicit = compiled(
        model, memory, arrays["features"], arrays["first"], arrays["reward"], valid=arrays["valid"]
    )
    np.testing.assert_array_equal(explicit.r_hat, implicit.r_hat)


def test_metrics():
    unroll = make_unroll(9, 8, 1, first_rate=0)
    unroll["first"][0] = True
    unroll["valid"][:] = True
    metrics = fast(make_model(), EpisodicMemory.empty(1, 4, PAST), unroll).metrics
    # The memory holds 0, 1, 2, 3, 4, 4, 4, 4 states; at t = 5, 6, 7 it has forgotten some.
    assert metrics["memory_fill"] == pytest.approx(22 / 32)
    assert metrics["memory_overflow"] == pytest.approx(3 / 8)
    assert 0 < metrics["gate_mean"] < metrics["gate_max"] < 1
    assert metrics["contribution_std"] > 0


def test_explained_variance_is_one_for_a_perfect_memory():
    class Perfect(eqx.Module):
        def contribution(self, past):
            return past[..., 0]

        def gate(self, current):
            return jnp.ones(current.shape[:-1])

        def baseline(self, current):
            return jnp.zeros(current.shape[:-1])

    unroll = make_unroll(10, 12, 2, first_rate=0.3)
    memory = EpisodicMemory.empty(2, 20, PAST)
    sums = fast(Perfect(), memory, unroll).c_sum_tm1
    result = fast(Perfect(), memory, unroll | {"reward": sums})
    assert result.metrics["explained_variance"] == pytest.approx(1, abs=1e-5)
    assert result.loss == pytest.approx(0, abs=1e-8)


def test_works_under_vmap_and_scan():
    unrolls = [make_unroll(seed, 5, 2) for seed in range(3)]
    memory = EpisodicMemory.empty(2, 6, PAST)
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *unrolls)

    vmapped = jax.vmap(lambda unroll: fast(make_model(), memory, unroll).loss)(stacked)
    np.testing.assert_allclose(
        vmapped, [fast(make_model(), memory, u).loss for u in unrolls], rtol=1e-5
    )

    def body(memory, unroll):
        result = fast(make_model(), memory, unroll)
        return result.memory, result.loss

    _, scanned = jax.lax.scan(body, memory, stacked)
    looped = []
    for unroll in unrolls:
        memory, loss = body(memory, unroll)
        looped.append(loss)
    np.testing.assert_allclose(scanned, looped, rtol=1e-5)


def test_nothing_is_learned_from_an_episode_that_was_not_seen_from_its_beginning():
    """Environments that begin in the middle of an episode: their sums over the past are cut."""
    model = make_model()
    first = jnp.zeros((8, 2), bool).at[3, 0].set(True)
    unroll = make_unroll(0, 8, 2) | {"first": first, "valid": jnp.ones((8, 2), bool)}
    cut = EpisodicMemory.empty(2, 10, PAST, whole=False)
    seen = jnp.zeros((8, 2), bool).at[3:, 0].set(True)
    got = fast(model, cut, unroll)
    want = fast(model, EpisodicMemory.empty(2, 10, PAST), unroll | {"valid": seen})
    # A mean over all transitions, so that parts of a batch add up to the whole.
    assert float(got.loss) == pytest.approx(float(want.loss) * 5 / 16, rel=1e-6)
    assert float(got.loss) != pytest.approx(
        float(fast(model, EpisodicMemory.empty(2, 10, PAST), unroll).loss), rel=1e-3
    )
    np.testing.assert_array_equal(got.memory.whole, [True, False])
    # The next unroll goes on where this one ended.
    later = unroll | {"first": jnp.zeros((8, 2), bool)}
    known = EpisodicMemory(got.memory.states, got.memory.steps, jnp.ones(2, bool))
    first_row = jnp.zeros((8, 2), bool).at[:, 0].set(True)
    want = fast(model, known, later | {"valid": first_row})
    assert float(fast(model, got.memory, later).loss) == pytest.approx(
        float(want.loss) / 2, rel=1e-6
    )
