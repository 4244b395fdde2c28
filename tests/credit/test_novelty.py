"""Novelty: new within the episode, new at all, and paid beside the credit of a method."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.data.episode import EpisodeBatch, Segment
from synthetic_returns.credit.novelty.method import WithNovelty
from synthetic_returns.credit.novelty.settings import NoveltySettings
from synthetic_returns.credit.novelty.state import NoveltyState, train
from synthetic_returns.credit.novelty.visited import Visited, episodic_novelty, visit
from synthetic_returns.credit.paper.method import Paper
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.engines.fused import FusedEngine
from synthetic_returns.nn.settings import TorsoSettings
from tests.credit.methods import REPLAY, NoveltyAdvance, Taken
from tests.small import small_config

TIME, BATCH, SIZE, NEIGHBOURS, CAPACITY = 14, 2, 3, 3, 5
SETTINGS = NoveltySettings(
    weight=0.5, neighbours=NEIGHBOURS, capacity=CAPACITY, encoder=TorsoSettings(sizes=(8,))
)
SPEC = EpisodeSpec((SIZE,), np.dtype(np.float32), TIME, num_actions=2)


def steps(seed=0):
    """Random states with an episode's end in each column."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(TIME + 1, BATCH, SIZE)).astype(np.float32)
    last = np.zeros((TIME + 1, BATCH), bool)
    last[5, 0] = last[11, 1] = True
    first = np.zeros_like(last)
    first[1:] = last[:-1]
    first[0, 0] = True
    return states, first, last


def slow_novelty(states, first, usual):
    """NGU's, in plain loops, for the episodes of one column."""
    memory, found = [], []
    for t in range(len(states) - 1):
        memory = [] if first[t] else memory
        memory = [*memory, states[t].astype(np.float64)][-CAPACITY:]
        square = sorted(((states[t + 1] - other) ** 2).sum() for other in memory)[:NEIGHBOURS]
        kernel = [1e-3 / (max(d / usual - 8e-3, 0) + 1e-3) for d in square]
        kernel += [1e-3 / (1 - 8e-3 + 1e-3)] * (NEIGHBOURS - len(square))
        found.append(np.sqrt(NEIGHBOURS * 1e-3) / (np.sqrt(sum(kernel)) + 1e-3))
    return np.array(found)


def test_novelty_is_that_of_the_paper_over_episode_ends():
    states, first, _ = steps()
    states[4, 0] = states[2, 0]  # seen before
    nothing = Visited.none(BATCH, CAPACITY, SIZE)
    square, visited = visit(nothing, jnp.asarray(states), jnp.asarray(first), NEIGHBOURS)
    found = np.asarray(episodic_novelty(square, jnp.float32(2.5)))
    for column in range(BATCH):
        want = slow_novelty(states[:, column], first[:, column], 2.5)
        np.testing.assert_allclose(found[:, column], want, rtol=1e-4)
    assert found[3, 0] < 0.1 < found[2, 0]
    # Unrolls of 7 make no difference.
    early, between = visit(nothing, jnp.asarray(states[:8]), jnp.asarray(first[:8]), NEIGHBOURS)
    late, after = visit(between, jnp.asarray(states[7:]), jnp.asarray(first[7:]), NEIGHBOURS)
    np.testing.assert_array_equal(np.concatenate([early, late]), square)
    np.testing.assert_array_equal(after.count, visited.count)


def test_what_was_seen_often_is_no_longer_new():
    """The actions that lead from state to state are learned, and the states by heart."""
    rng = np.random.default_rng(1)
    action = rng.integers(0, 2, (TIME, 8)).astype(np.int32)
    walk = np.concatenate([np.zeros((1, 8)), np.cumsum(2 * action - 1, axis=0)])
    observation = np.zeros((TIME + 1, 8, SIZE), np.float32)
    observation[..., 0] = walk / 4
    episodes = EpisodeBatch(
        observation=jnp.asarray(observation),
        reward=jnp.zeros((TIME, 8)),
        discount=jnp.ones((TIME, 8)),
        length=jnp.asarray([TIME, 9, 9, TIME, TIME, 9, TIME, 0], jnp.int32),
        action=jnp.asarray(action),
    )
    state = NoveltyState.init(SPEC, SETTINGS, jax.random.key(0))
    random_features = state.model.unknown(episodes.observation)
    assert (state.modulator(episodes.observation, 5.0) == 1).all()  # nothing is usual yet
    update = eqx.filter_jit(train)
    losses = []
    for _ in range(400):
        state, metrics = update(state, episodes, SETTINGS)
        losses.append(float(metrics["novelty_action_loss"]))
    assert losses[-1] < 0.5 * losses[0]
    assert 0 < float(state.distance) < 1
    np.testing.assert_array_equal(state.model.unknown(episodes.observation), random_features)
    seen = np.asarray(state.modulator(jnp.asarray(observation[0]), 5.0))
    unseen = np.asarray(state.modulator(jnp.full((8, SIZE), 3.0), 5.0))
    assert seen.max() < 2
    assert unseen.min() == 5


@pytest.mark.parametrize("with_credit", [False, True])
def test_it_is_paid_beside_credit_which_still_conserves_the_return(with_credit):
    credit = NoveltyAdvance(replay=REPLAY) if with_credit else None
    method = WithNovelty.beside(credit, SETTINGS, alpha=0.25)
    state = method.init(SPEC, jax.random.key(0))
    states, first, last = steps()
    segment = Segment(
        observation=states,
        first=first,
        last=last,
        reward=np.ones((TIME, BATCH), np.float32),
        discount=np.ones((TIME, BATCH), np.float32),
        action=np.zeros((TIME, BATCH), np.int32),
    )
    carry = method.start(state, BATCH), jnp.zeros(BATCH)
    paid: Any = method.pay(state, carry, segment)[0]
    nothing = Visited.none(BATCH, CAPACITY, 8)
    new, _ = method.novelty(state.novelty, nothing, segment)
    inside = ~(last[1:] | last[:-1])
    want = np.where(inside, 0.5 / 0.25 * np.asarray(new), 0)
    if credit is not None:
        carry = credit.start(state.credit, BATCH), carry[1]
        alone = np.asarray(credit.pay(state.credit, carry, segment)[0].reward)
        want = want + alone
        assert abs(alone[:5, 0].sum()) < 1e-4
        assert np.abs(alone).max() > 0.1
    np.testing.assert_allclose(paid.reward, want, rtol=1e-5, atol=1e-6)
    assert new.min() > 0


@pytest.mark.parametrize("agent", ["impala", "r2d2"])
def test_agents_are_paid_for_it(agent):
    settings = {"novelty": SETTINGS, "agent.lstm_size": 0}
    engine = FusedEngine(small_config("none", settings, agent=agent), [0])
    for _ in range(4):
        engine.step()
    (report,) = engine.report()
    assert report["credit/novelty_surprise"] > 0
    assert report["reward/augmented"] > 0.05  # the task itself pays 0, nearly always
    assert engine.explainer(0) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"credit": Paper()}, "'paper' pays no rewards that novelty could be added to"),
        ({"credit": Taken()}, "pays no rewards .* set novelty.weight to 0"),
        ({"reward.alpha": 0.0}, "reward.alpha is 0"),
        ({"engine.updates_per_call": 2}, "updates_per_call is 2; .* set it to 1"),
        ({"novelty.capacity": 2}, "capacity is 2 and neighbours is 3"),
        ({"novelty.weight": -1.0}, "weight is -1.0; use 0"),
    ],
)
def test_what_does_not_go_with_novelty_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        small_config("none", {"novelty": SETTINGS, **settings})
