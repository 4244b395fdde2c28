"""The model of the cluster engine: its limits are known by arithmetic."""

import dataclasses

import pytest

from synthetic_returns.bench.cluster_model import ClusterCosts, forecast

COSTS = ClusterCosts(
    play_s=1.0, receive_s=0.02, update_s=0.08, unroll_bytes=1e6, weights_bytes=1e5, unroll_steps=100
)


def test_few_actors_are_the_limit():
    """One plays while the learner learns from its last unroll: the learner is busy 0.1 of 1 s."""
    found = forecast(COSTS, 1, jitter=0.0)
    assert found.steps_per_s == pytest.approx(100, rel=1e-6)
    assert found.learner_busy == pytest.approx(0.1, rel=1e-6)
    assert found.lag == pytest.approx(1, abs=0.01)
    assert found.bytes_in_per_s == pytest.approx(1e6)
    two = forecast(COSTS, 2, jitter=0.0)
    assert two.steps_per_s == pytest.approx(200, rel=0.02)


def test_with_many_actors_the_learner_is_the_limit():
    found = forecast(COSTS, 64)
    assert found.steps_per_s == pytest.approx(1000, rel=0.02)
    assert found.learner_busy == pytest.approx(1, abs=0.02)
    assert found.lag == pytest.approx(20, abs=0.5)  # no more are under way than that
    assert forecast(COSTS, 64, max_lag=100).lag == pytest.approx(64, abs=0.5)
    # A second of play is ten updates: with fewer under way the learner has to wait.
    assert forecast(COSTS, 64, max_lag=5).steps_per_s == pytest.approx(500, rel=0.1)


def test_shared_cores_are_the_limit_whatever_the_number_of_actors():
    for actors in (2, 8):
        found = forecast(COSTS, actors, cores=2.0)
        assert found.steps_per_s == pytest.approx(2 * 100 / 1.1, rel=0.03)


def test_the_network_is_the_limit():
    found = forecast(COSTS, 64, bytes_per_s=2e6)
    assert found.steps_per_s == pytest.approx(200, rel=0.02)
    assert found.bytes_in_per_s == pytest.approx(2e6, rel=0.02)


def test_batches_of_several_actors_lag_less():
    """The paper's 256 actors of one environment each, in batches of 32."""
    small = dataclasses.replace(COSTS, receive_s=0.0, update_s=0.1)
    one = forecast(small, 256, unrolls_per_update=1, max_lag=300)
    many = forecast(small, 256, unrolls_per_update=32)
    assert one.lag > 150
    assert many.lag == pytest.approx(8, abs=0.5)
    assert many.steps_per_s > 20 * one.steps_per_s
    # Nodes fetch every version once: 256 of them, ten versions a second.
    assert forecast(small, 256, unrolls_per_update=32, actors_per_node=32).bytes_out_per_s < (
        many.bytes_out_per_s / 3
    )
