"""RUDDER: its LSTM, losses, quality and payments, against plain loops in float64."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.data.buffer import padded
from synthetic_returns.credit.data.episode import Episode, Segment
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.needs import check_needs
from synthetic_returns.credit.rudder.method import Rudder
from synthetic_returns.credit.rudder.model import ReturnModel
from synthetic_returns.credit.rudder.state import RudderState, examine, forecast, losses, targets
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.nn.clock import time_features
from synthetic_returns.nn.settings import TorsoSettings
from tests.credit.test_redistribution import random_episodes

STEPS = 7
SPEC = EpisodeSpec((3,), np.dtype(np.float32), STEPS, num_actions=2)
METHOD = Rudder(encoder=TorsoSettings(sizes=(8,)), lstm_size=5)
EPISODES = random_episodes(0, [1, 4, STEPS, 3])
BATCH = padded(EPISODES, STEPS, ["action"])
SOON = 2


def make_state() -> RudderState:
    """One that says something, in units that are not 1."""
    state = METHOD.init(SPEC, jax.random.key(0))
    read = state.model.read
    weight = jax.random.normal(jax.random.key(5), read.weight.shape)
    return eqx.tree_at(
        lambda s: (s.model.read.weight, s.model.read.bias, s.mean, s.variance, s.updates),
        state,
        (weight, jnp.array([0.3, -0.2, 0.1]), jnp.float32(1.5), jnp.float32(4.0), jnp.int32(1)),
    )


STATE = make_state()


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def say(model: ReturnModel, one: Episode) -> tuple[np.ndarray, np.ndarray]:
    """What an LSTM without forget and output gates says: ``[T, 3]``, before and after each step."""
    assert one.action is not None
    f64 = {
        name: (np.asarray(layer.weight, np.float64), np.asarray(layer.bias, np.float64))
        for name, layer in (("z", model.write), ("i", model.gate), ("out", model.read))
    }
    encoded = np.asarray(model.transitions.states(jnp.asarray(one.observation)), np.float64)
    cell, before, after = np.zeros(5), [], []
    for t in range(len(one)):
        start = encoded[0] if t == 0 else np.zeros(8)
        clock = np.asarray(time_features(jnp.int32(t), STEPS), np.float64)
        x = np.concatenate([start, encoded[t + 1], np.eye(2)[one.action[t]], clock])
        before.append(f64["out"][0] @ cell + f64["out"][1])
        z = np.tanh(f64["z"][0] @ x + f64["z"][1])
        i = sigmoid(f64["i"][0] @ cell + f64["i"][1])
        cell = cell + i * z
        after.append(f64["out"][0] @ cell + f64["out"][1])
    return np.array(before), np.array(after)


def test_cells_are_sums_of_what_was_written():
    found = forecast(STATE.model, BATCH)
    for column, one in enumerate(EPISODES):
        for said, want in zip(found, say(STATE.model, one), strict=True):
            rows = np.stack([said.whole, said.so_far, said.soon], axis=-1)[: len(one), column]
            np.testing.assert_allclose(rows, want, rtol=1e-4, atol=1e-5)


def test_it_is_trained_on_the_return_at_the_end_and_on_three_things_everywhere():
    target = targets(STATE, BATCH, SOON)
    _, said = forecast(STATE.model, BATCH)
    main, whole, so_far, soon, steps = 0.0, 0.0, 0.0, 0.0, 0
    for one in EPISODES:
        _, after = say(STATE.model, one)
        r = one.reward.astype(np.float64) / 2
        for t in range(len(one)):
            whole += (r.sum() - 0.75 - after[t, 0]) ** 2
            so_far += (sum(r[k] for k in range(t + 1)) - after[t, 1]) ** 2
            later = [r[k] for k in range(t + 1, min(t + 1 + SOON, len(one)))]
            soon += (sum(later) - after[t, 2]) ** 2
            steps += 1
        main += (r.sum() - 0.75 - after[-1, 0]) ** 2
    found_main, found_auxiliary = losses(said, target, BATCH)
    assert float(found_main) == pytest.approx(main / len(EPISODES), rel=1e-4)
    assert float(found_auxiliary) == pytest.approx((whole + so_far + soon) / steps, rel=1e-4)


def test_what_is_written_is_never_forgotten():
    """The gradient of the last prediction with respect to the first state does not fade."""
    steps = 400
    spec = dataclasses.replace(SPEC, max_steps=steps)
    model = METHOD.init(spec, jax.random.key(0)).model
    model = eqx.tree_at(lambda m: m.read.weight, model, jnp.ones_like(model.read.weight))
    (one,) = random_episodes(1, [steps])

    def last(observation: Any, end: int) -> Any:
        batch = dataclasses.replace(padded([one], steps, ["action"]), observation=observation)
        return forecast(model, batch)[1].whole[end, 0]

    observation = jnp.asarray(one.observation)[:, None]
    gradient = jax.jit(jax.grad(last))
    early, late = (np.abs(gradient(observation, end)[1]).sum() for end in (1, steps - 1))
    assert late > 0.3 * early > 0


def test_quality_is_what_is_explained_at_the_end_of_new_episodes():
    missed, at_stake = [], []
    for one in EPISODES:
        total = one.reward.astype(np.float64).sum()
        missed.append((total - 1.5 - 2 * say(STATE.model, one)[1][-1, 0]) ** 2)
        at_stake.append((total - 1.5) ** 2)
    after = examine(STATE, BATCH)
    assert float(after.missed) == pytest.approx(np.mean(missed), rel=1e-4)
    assert float(after.at_stake) == pytest.approx(np.mean(at_stake), rel=1e-4)
    want = np.clip(1 - np.mean(missed) / np.mean(at_stake), 0, 1)
    assert float(after.quality) == pytest.approx(want, abs=1e-4)


def test_before_it_has_learned_it_is_not_trusted_and_episodes_that_end_alike_say_nothing():
    untaught = eqx.tree_at(lambda s: s.updates, STATE, jnp.int32(0))
    assert float(examine(untaught, BATCH).quality) == 0
    trusted = eqx.tree_at(
        lambda s: (s.missed, s.at_stake, s.usually_at_stake, s.examined),
        STATE,
        (jnp.float32(1.0), jnp.float32(4.0), jnp.float32(4.0), jnp.int32(100)),
    )
    alike = [dataclasses.replace(e, reward=np.full(3, 0.5, np.float32)) for e in [EPISODES[3]] * 8]
    assert sum(alike[0].reward) == 1.5  # the usual return
    look, batch = eqx.filter_jit(examine), padded(alike, STEPS, ["action"])
    for _ in range(50):
        trusted = look(trusted, batch)
    assert float(trusted.quality) == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize("gated", [False, True])
def test_a_transition_is_paid_the_change_of_the_prediction(gated):
    method = dataclasses.replace(METHOD, gated=gated)
    state = eqx.tree_at(
        lambda s: (s.missed, s.at_stake), STATE, (jnp.float32(1.0), jnp.float32(4.0))
    )
    one = EPISODES[2]
    before, after = say(state.model, one)
    want = 2 * (after[:, 0] - before[:, 0]) - one.reward
    want *= 0.75 if gated else 1
    driver = CreditDriver(method, SPEC, View(), max_episode_steps=STEPS, num_envs=1,
                          key=jax.random.key(0))  # fmt: skip
    driver.state = state
    credit = np.asarray(driver._credit_of(one).reward)[:, 0]
    np.testing.assert_allclose(credit[:-1], want[:-1], rtol=1e-4, atol=1e-5)
    assert credit.sum() == pytest.approx(0, abs=1e-4)  # so the episode is paid its return
    explained = driver.explain(one)
    assert [*explained.terms] == ["credit", "redistributed", "predicted"]
    np.testing.assert_allclose(np.asarray(explained.paid)[1:-1], want[:-1], rtol=1e-4, atol=1e-5)
    predicted = 1.5 + 2 * np.array([before[0, 0], *after[:, 0]])
    np.testing.assert_allclose(explained.terms["predicted"].values, predicted, rtol=1e-4, atol=1e-4)


def test_episodes_in_one_stream_are_read_apart():
    """Two episodes in one segment are paid as in two; memory and clock start again."""
    first, second = EPISODES[1], EPISODES[3]
    n, m = len(first), len(second)
    time = np.arange(n + m + 2)
    zero = np.zeros(1, np.float32)

    def joined(name: str, gap: Any) -> np.ndarray:
        return np.concatenate([getattr(first, name), gap, getattr(second, name)])[:, None]

    segment = Segment(
        observation=joined("observation", np.zeros((0, 3), np.float32)),
        first=((time == 0) | (time == n + 1))[:, None],
        last=((time == n) | (time == n + m + 1))[:, None],
        reward=joined("reward", zero),
        discount=joined("discount", zero),
        action=joined("action", np.zeros(1, np.int32)),
    )
    method = dataclasses.replace(METHOD, gated=False)
    credit, reading = method.assign(STATE, method.start(STATE, 1), segment)
    credit = credit.shared_out(1)
    paid = np.asarray(credit.reward)[:, 0]
    for part, one in ((paid[:n], first), (paid[n + 1 :], second)):
        before, after = say(STATE.model, one)
        want = 2 * (after[:, 0] - before[:, 0]) - one.reward
        np.testing.assert_allclose(part, want, rtol=1e-4, atol=1e-5)
    assert reading.steps.tolist() == [m]


def test_episodes_that_an_lstm_cannot_be_trained_on_are_refused():
    with pytest.raises(
        ValueError, match=r"up to 7 steps .* at most 5: raise its setting max_episode_steps"
    ):
        dataclasses.replace(METHOD, max_episode_steps=5).init(SPEC, jax.random.key(0))
    with pytest.raises(ValueError, match=r"one state in 3 .*: set the stride to 1"):
        check_needs(METHOD, dataclasses.replace(SPEC, stride=3))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lstm_size": 0}, "lstm_size is 0"),
        ({"auxiliary_cost": -1.0}, "auxiliary_cost is -1.0; it must be a finite number, 0 or more"),
        ({"auxiliary_steps": 0}, "auxiliary_steps is 0"),
        ({"learning_rate": -1.0}, "learning_rate is -1.0"),
        ({"max_episode_steps": 0}, "max_episode_steps is 0"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Rudder(**settings)
