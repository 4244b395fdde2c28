"""The method of advances: trust, shares, and what only the forecast can tell."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.agents.optimizers import GETTING_TO_KNOW, UsualState
from synthetic_returns.credit.advance import train as regressions
from synthetic_returns.credit.advance.evidence import STEEPEST, WANDER, WINDOW, Evidence
from synthetic_returns.credit.advance.examine import examine as examine_
from synthetic_returns.credit.advance.method import Advance
from synthetic_returns.credit.advance.parts import PARTS, check_parts
from synthetic_returns.credit.advance.state import parts_of
from synthetic_returns.credit.advance.steps import prevented, sum_reached
from synthetic_returns.credit.data.buffer import padded
from synthetic_returns.credit.data.episode import Episode, Segment
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.utils.averages import suffix_average

STEPS = 6
examine = eqx.filter_jit(examine_)
predict = eqx.filter_jit(lambda model, *inputs: model(*inputs))
step = eqx.filter_jit(regressions.train)
SMALL = Advance(
    encoder=TorsoSettings(sizes=(32,)),
    head_sizes=(32,),
    learning_rate=3e-3,
    replay=Replay(slots=256, batch_size=32, updates_per_episode=0.5, same_age=True),
)


def make_driver(method: Advance = SMALL, **spec: Any) -> CreditDriver:
    given: dict[str, Any] = {"num_actions": 2} | spec
    kind = EpisodeSpec((3,), np.dtype(np.float32), STEPS, **given)
    return CreditDriver(
        method, kind, View(), max_episode_steps=STEPS, num_envs=1, key=jax.random.key(0)
    )


def episode(observation, reward, action=None) -> Episode:
    n = len(reward)
    action = np.zeros(n, np.int32) if action is None else np.asarray(action, np.int32)
    ends = np.ones(n, np.float32)
    ends[-1] = 0
    return Episode(
        np.asarray(observation, np.float32), np.asarray(reward, np.float32), ends, action
    )


def random_episodes(seed, number, lengths=(STEPS,)):
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(number):
        n = int(rng.choice(lengths))
        made.append(
            episode(rng.normal(size=(n + 1, 3)), rng.normal(size=n), rng.integers(2, size=n))
        )
    return made


def talkative(state):
    """With heads that say something before they have learned."""
    keys = iter(jax.random.split(jax.random.key(5), 8))
    names = ("c", "u", "b", "forecast", "variance", "ending", "after")
    heads = [getattr(state.model, name) for name in names]
    loud = [
        eqx.tree_at(
            lambda h: h.layers[-1].weight,
            head,
            0.5 * jax.random.normal(next(keys), head.layers[-1].weight.shape),
        )
        for head in heads
    ]
    model = eqx.tree_at(lambda m: [getattr(m, name) for name in names], state.model, loud)
    return eqx.tree_at(
        lambda s: (s.updates, s.variance, s.mean),
        with_model(state, model),
        (jnp.int32(1), jnp.float32(4.0), jnp.array([0.3, -0.2])),
    )


def with_model(state, model):
    """With other parameters, which pay at once."""
    packed = state.trained.like(parts_of(model)[0])
    return dataclasses.replace(state, trained=packed, averaged=packed)


def predicted(state, one: Episode) -> Any:
    """A prediction in float64."""
    return jax.tree.map(
        lambda x: np.asarray(x, np.float64)[:, 0], predict(state.model, *_inputs(one))
    )


def _inputs(one: Episode) -> Any:
    time = jnp.arange(len(one) + 1, dtype=jnp.int32)[:, None]
    return jnp.asarray(one.observation)[:, None], jnp.asarray(one.action)[:, None], time


def test_trust_is_the_slope_of_what_came_on_what_was_paid():
    """Against plain loops in float64, on episodes of different lengths."""
    before = np.array([0.4, 0.3, 0.6, 0.5, -0.2])
    state = talkative(make_driver().state)
    state = eqx.tree_at(lambda s: s.evidence.slopes, state, jnp.asarray(before, jnp.float32))
    episodes = random_episodes(0, 9, lengths=(1, 2, 4, STEPS))
    assert len({len(e) for e in episodes}) > 2
    scale, c_mean, u_mean = 2.0, 0.3, -0.2
    gains = [dict[tuple[int, int], float]() for _ in range(5)]
    outcomes = [dict[tuple[int, int], float]() for _ in range(5)]
    for i, one in enumerate(episodes):
        p, r = predicted(state, one), one.reward.astype(np.float64)
        for t in range(len(one) - 1):  # the last step is not paid in advance
            gains[0][t, i] = scale * (p.c[t] - c_mean)
            gains[1][t, i] = scale * (p.u[t] - u_mean)
            gains[2][t, i] = scale * (p.forecast[t + 1] - p.forecast[t])
            later = range(t + 1, len(one))
            left = sum(r[k] - scale * p.b[k] for k in later)
            for k in later:  # an end is worth what it prevents, as far as it was not expected
                expected, ended = 1 / (1 + np.exp(-p.ending[k])), k == len(one) - 1
                left += scale * (expected - ended) * p.after[k]
            for k, other, trust in ((0, 1, 0.3), (1, 0, 0.5)):  # each gets what the other leaves
                outcomes[k][t, i] = left - trust * sum(gains[other][j, i] for j in range(t + 1))
            outcomes[2][t, i] = sum(r[k] for k in range(t + 1, len(one)))
            for steps, sums in ((0, 3), (1, 4)):  # all that was paid so far
                gains[sums][t, i] = sum(gains[steps][k, i] for k in range(t + 1))
                outcomes[sums][t, i] = outcomes[steps][t, i]
    known = []
    for old, gain, outcome in zip(before, gains, outcomes, strict=True):
        products, squares = np.zeros(len(episodes)), np.zeros(len(episodes))
        for (t, i), value in gain.items():
            alive = [j for (s, j) in gain if s == t]
            mean_gain = np.mean([gain[t, j] for j in alive])
            mean_outcome = np.mean([outcome[t, j] for j in alive])
            products[i] += float((value - mean_gain) * (outcome[t, i] - mean_outcome))
            squares[i] += float((value - mean_gain) ** 2)
        luck = products - max(old, 0) * squares  # of whole episodes
        variance = np.sum(luck**2) / np.sum(squares) ** 2
        guess = old * np.sqrt(1 - WANDER)
        known.append(guess + (np.sum(products) / np.sum(squares) - guess) / (1 + variance))
    after = examine(state, padded(episodes, STEPS, ["action"]))
    np.testing.assert_allclose(after.evidence.slopes, known, rtol=2e-4)
    c, u, forecast = np.clip(known[:3], 0, 1)
    c_sum, u_sum = np.clip(known[3:], 0, STEEPEST)
    np.testing.assert_allclose(after.trust, [max(c, c_sum), max(u, u_sum), forecast], rtol=2e-4)


def test_a_cause_that_happens_once_is_trusted_in_full():
    """Whoever takes the key now did not take it before: single steps see half of its worth."""
    episodes = 60
    gains, outcomes = np.zeros((5, STEPS, episodes)), np.zeros((5, STEPS, episodes))
    for i in range(episodes):
        taken = i % 3  # at step 0, at step 1, or not at all
        if taken < 2:
            gains[0, taken, i] = 1
            outcomes[0, :, i] = outcomes[3, :, i] = 1
    gains[3] = np.cumsum(gains[0], axis=0)
    evidence = Evidence.init(claims=5).with_episodes(
        jnp.asarray(gains, jnp.float32),
        jnp.asarray(outcomes, jnp.float32),
        jnp.ones((STEPS, episodes), bool),
        jnp.zeros(5),
        jnp.asarray(True),
    )
    assert float(evidence.slopes[0]) < 0.6
    state = eqx.tree_at(lambda s: s.evidence, make_driver().state, evidence)
    assert float(state.trust[0]) > 0.8


def test_a_policy_without_mistakes_does_not_wear_the_trust_out():
    """Where next to nothing is at stake, claims that do not come true say next to nothing."""
    rng = np.random.default_rng(0)
    mask, true = jnp.ones((STEPS, 8), bool), jnp.asarray(True)
    add = eqx.filter_jit(Evidence.with_episodes)
    evidence = Evidence.init(claims=1)
    for quiet in (False, True):
        for _ in range(200):
            claims = rng.normal(size=(1, STEPS, 8)).astype(np.float32)
            outcomes = 0.1 * rng.normal(size=claims.shape).astype(np.float32) if quiet else claims
            claims, outcomes = jnp.asarray(claims), jnp.asarray(outcomes)
            evidence = add(evidence, claims, outcomes, mask, jnp.ones(1), true)
    assert float(evidence.slopes[0]) > 0.8


def test_small_claims_about_luck_are_not_trusted():
    """Their slope is plus or minus a hundred, and says nothing; that of the truth is known."""
    rng = np.random.default_rng(0)
    mask, true = jnp.ones((STEPS, 8), bool), jnp.asarray(True)
    add = eqx.filter_jit(Evidence.with_episodes)
    evidence = Evidence.init(claims=21)
    trusted = []
    for _ in range(200):
        luck = rng.normal(size=(1, STEPS, 8))
        claims = np.concatenate([0.01 * rng.normal(size=(20, *luck.shape[1:])), luck])
        outcomes = np.repeat(luck, 21, axis=0)
        claims, outcomes = (jnp.asarray(x, jnp.float32) for x in (claims, outcomes))
        evidence = add(evidence, claims, outcomes, mask, jnp.ones(21), true)
        trusted.append(np.clip(np.asarray(evidence.slopes), 0, 1))
    assert np.mean(trusted, axis=0)[:20].mean() < 0.25
    assert trusted[-1][20] > 0.95


def test_what_is_left_for_the_end_is_paid_in_equal_parts():
    state = make_driver().state
    state = eqx.tree_at(lambda s: (s.at_end, s.length), state, (jnp.float32(6.0), jnp.float32(3.0)))
    time = jnp.arange(6, dtype=jnp.int32)[:, None]
    np.testing.assert_allclose(state.share(time)[:, 0], [2, 2, 2, 0, 0])


def test_what_is_usual_at_the_end_is_the_last_reward_less_what_was_advanced():
    state = talkative(make_driver().state)
    state = eqx.tree_at(lambda s: s.evidence.slopes, state, jnp.array([0.5, 0.7, 0.25, 0.1, 0.2]))
    episodes = random_episodes(1, 5, lengths=(2, STEPS))
    after = examine(state, padded(episodes, STEPS, ["action"]))
    trust = np.asarray(after.trust, np.float64)
    left = []
    for one in episodes:
        p = predicted(state, one)
        gains = np.stack([p.c - 0.3, p.u + 0.2, np.diff(p.forecast)])
        paid = 2.0 * trust @ gains
        left.append(one.reward[-1] - paid[:-1].sum())
    assert float(after.at_end) == pytest.approx(np.mean(left), rel=1e-3)
    assert float(after.length) == pytest.approx(np.mean([len(e) for e in episodes]))


def test_the_usual_follows_the_newest_episodes():
    state = talkative(make_driver().state)
    state = with_model(state, jax.tree.map(jnp.zeros_like, state.model))
    state = eqx.tree_at(lambda s: s.mean, state, jnp.zeros(2))
    zero, one = (padded([episode(np.zeros((3, 3)), [0, x])], STEPS, ["action"]) for x in (0.0, 1.0))
    for _ in range(WINDOW):
        state = examine(state, zero)
    assert float(state.at_end) == 0
    for _ in range(WINDOW):
        state = examine(state, one)
    assert 0.5 < float(state.at_end) < 0.8  # 1 - 1 / e


def learned(make, method=SMALL, number=60, **spec):
    driver = make_driver(method, **spec)
    rng = np.random.default_rng(0)
    for _ in range(number):
        driver.learn([make(rng) for _ in range(16)])
    return driver


def paid_in(driver, one: Episode) -> np.ndarray:
    return np.asarray(driver._credit_of(one).reward)[:, 0]


def test_a_cause_that_stays_in_view_is_paid_where_it_happens():
    """The last state shows everything, so that nothing is left for c: only the forecast tells."""

    def make(rng):
        good = rng.integers(2)
        observation = np.zeros((STEPS + 1, 3))
        observation[2:, 0], observation[:, 2] = good, 1
        return episode(observation, [0] * (STEPS - 1) + [2.0 * good])

    driver = learned(make)
    rng = np.random.default_rng(7)
    by_outcome = {}
    for _ in range(20):
        one = make(rng)
        by_outcome[float(one.reward.sum())] = paid_in(driver, one)
    apart = by_outcome[2.0] - by_outcome[0.0]
    assert apart[1] == pytest.approx(2, abs=0.5)  # arriving in state 2
    assert np.all(np.abs(np.delete(apart[:-1], 1)) < 0.4)
    assert apart[-1] == pytest.approx(-2, abs=0.5)  # settled


def test_a_cause_that_no_observation_shows_is_found_in_the_action():
    def make(rng):
        action = rng.integers(2, size=STEPS)
        observation = np.zeros((STEPS + 1, 3))
        observation[np.arange(STEPS + 1), np.minimum(np.arange(STEPS + 1), 2)] = 1
        return episode(observation, [0] * (STEPS - 1) + [2.0 * action[1]], action)

    driver = learned(make)
    rng = np.random.default_rng(7)
    found: dict[int, list[float]] = {}
    for _ in range(20):
        one = make(rng)
        assert one.action is not None
        found.setdefault(int(one.action[1]), []).append(paid_in(driver, one)[1])
    assert np.mean(found[1]) - np.mean(found[0]) == pytest.approx(2, abs=0.5)


@pytest.mark.parametrize(("cut", "gap"), [(False, 3), (True, -1)])
def test_what_makes_an_episode_end_gets_credit_for_what_the_end_prevents(cut, gap):
    """A key, seen once, opens a door for 1, which saves a penalty of 4 that b would explain.

    If a time limit cuts episodes off instead, they end for no reason of their own: then all that
    the key does is to cost 1.
    """

    def make(rng):
        key = rng.integers(2)
        steps = 4 if key else STEPS
        observation = np.zeros((steps + 1, 3))
        observation[1, 0], observation[3:, 1] = key, 1
        one = episode(observation, [0] * (steps - 1) + [-1.0 if key else -4.0])
        return dataclasses.replace(one, discount=np.ones_like(one.discount)) if cut else one

    rng = np.random.default_rng(7)
    episodes = {len(one): one for one in (make(rng) for _ in range(20))}
    driver = learned(make)
    with_key, closed = (
        np.asarray(driver.explain(episodes[n]).terms["c"].values) for n in (4, STEPS)
    )
    assert with_key[1] - closed[1] == pytest.approx(gap, abs=1)


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("time", [1, 7])
def test_the_sum_that_is_reached(time, batch):
    rng = np.random.default_rng(0)
    b, ending = rng.normal(size=(2, time, batch))
    known = np.zeros((time, batch))
    for i in range(batch):
        for t in range(time):
            reached = 1.0
            for k in range(t + 1, time):
                known[t, i] += reached * b[k, i]
                reached *= 1 - 1 / (1 + np.exp(-ending[k, i]))
    found = sum_reached(jnp.asarray(b, jnp.float32), jnp.asarray(ending, jnp.float32))
    np.testing.assert_allclose(found, known, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("ends", [False, True])
def test_an_end_prevents_a_reward_once_however_often_it_is_promised(ends):
    """Whatever happens, b less what an end prevents sums to what was expected at first."""
    rng = np.random.default_rng(0)
    b, ending = jnp.asarray(rng.normal(size=(2, STEPS, 1)), jnp.float32)
    after = sum_reached(b, ending)
    ended = jnp.zeros((STEPS, 1)).at[-1].set(float(ends))
    state = talkative(make_driver().state)
    said = predict(state.model, *_inputs(random_episodes(0, 1)[0]))
    said = dataclasses.replace(said, ending=ending, after=after)
    expected = b[0] + jax.nn.sigmoid(-ending[0]) * after[0]
    np.testing.assert_allclose(jnp.sum(b - prevented(said, ended), axis=0), expected, rtol=1e-4)


PAID = ("u", "forecast", "trust", "calibration", "share")
LEARNED = ("ending", "usual", "averaging", "certainty", "decay", "clipping")
EXAMINED = ("stakes",)


def test_every_part_can_be_left_out():
    assert {*PAID, *LEARNED, *EXAMINED} == {*PARTS}


@pytest.mark.parametrize("part", PAID)
def test_without_a_part_something_else_is_paid(part):
    state = talkative(make_driver().state)
    one = random_episodes(3, 1)[0]
    slopes = jnp.array([0.5, 0.5, 0.5, 1.5, 1.5])
    state = eqx.tree_at(lambda s: (s.evidence.slopes, s.at_end), state, (slopes, jnp.float32(3.0)))
    inputs = _inputs(one)

    def paid(state):
        prediction = predict(state.model, *inputs)
        return jnp.sum(state.trusted(prediction), axis=0) + state.share(inputs[-1])

    left_out = paid(dataclasses.replace(state, without=(part,)))
    assert np.abs(np.asarray(left_out - paid(state))).max() > 0.1


@pytest.mark.parametrize("part", LEARNED)
def test_without_a_part_something_else_is_learned(part):
    state = talkative(make_driver().state)
    ordinary = padded(random_episodes(0, 4), STEPS, ["action"])
    state = eqx.tree_at(  # as after many updates with small gradients
        lambda s: s.optimizer[0],
        state,
        UsualState(
            jax.tree.map(lambda x: jnp.full_like(x, 1e-6), state.optimizer[0].square),
            jnp.asarray(GETTING_TO_KNOW),
        ),
    )

    def learned(state):
        after, _ = step(state, ordinary, 1e-3, jax.random.key(1))
        return np.concatenate([np.ravel(x) for x in jax.tree.leaves((after.model, after.steady))])

    left_out = learned(dataclasses.replace(state, without=(part,)))
    # Adam's first steps hardly depend on the size of a gradient: the differences may be small.
    assert not np.allclose(left_out, learned(state), rtol=0, atol=1e-8)


@pytest.mark.parametrize("part", EXAMINED)
def test_without_a_part_something_else_is_trusted(part):
    episodes = padded(random_episodes(0, 4), STEPS, ["action"])

    def trusted(state):
        return np.asarray(examine(state, episodes).evidence.slopes)

    state = talkative(make_driver().state)
    state = eqx.tree_at(lambda s: s.at_stake, state, jnp.full((2, 3), 1e3))
    left_out = trusted(dataclasses.replace(state, without=(part,)))
    assert np.abs(left_out - trusted(state)).max() > 1e-3


def test_what_pays_is_an_average_over_the_last_updates():
    """Of weights that grow by 1 an update it lags behind by a ninth of all updates."""
    average = jnp.zeros(())
    for count in range(900):
        average = suffix_average(average, jnp.float32(count), jnp.int32(count))
    assert 899 - float(average) == pytest.approx(900 / 9, rel=0.15)
    state = talkative(make_driver().state)
    batch = padded(random_episodes(0, 4), STEPS, ["action"])
    state = dataclasses.replace(state, updates=jnp.int32(81))
    after, _ = step(state, batch, 1e-3, jax.random.key(1))
    moved = after.model.c.layers[0].weight - state.model.c.layers[0].weight
    paid = after.steady.c.layers[0].weight - state.steady.c.layers[0].weight
    np.testing.assert_allclose(paid, moved / 10, atol=1e-6)
    one = random_episodes(4, 1)[0]
    explain = eqx.filter_jit(Advance().explain)
    explained = explain(after, padded([one], STEPS, ["action"])).terms["b"].values[0, 0]
    told = after.scale * predict(after.steady, *_inputs(one)).b[0, 0]
    np.testing.assert_allclose(explained, told, rtol=1e-5)
    assert abs(float(told - after.scale * predict(after.model, *_inputs(one)).b[0, 0])) > 1e-5


def test_what_is_usually_at_stake_is_measured_on_the_episodes_that_are_kept():
    """In units of reward, whatever the unit of the model."""
    driver = make_driver()
    for _ in range(8):
        driver.learn(random_episodes(0, 64))
    c, u, returns = np.asarray(driver.state.at_stake[0])
    rewards = np.array([one.reward for one in random_episodes(0, 64)])
    to_come = np.cumsum(rewards[:, ::-1], axis=1)[:, ::-1]
    assert returns == pytest.approx(to_come.var(axis=0).mean(), rel=0.3)
    assert 0.2 * returns < u < 1.2 * c < 1.5 * returns


def test_episodes_without_mistakes_do_not_change_what_is_usually_at_stake():
    def usual(quiet):
        state = make_driver().state
        for number in range(400):
            reward = np.random.default_rng(number).normal(size=(STEPS, 4))
            calm = number % 2 and quiet
            batch = padded(random_episodes(number, 4), STEPS, ["action"])
            reward = jnp.zeros_like(batch.reward).at[:STEPS, :4].set(0 if calm else reward)
            batch = dataclasses.replace(batch, reward=reward)
            state, _ = step(state, batch, 0.0, jax.random.key(number))
        return np.asarray(state.usual_stake)

    np.testing.assert_allclose(usual(True), usual(False), rtol=0.25)


@pytest.mark.parametrize("steps", [1, 3, 6, 139])
def test_every_point_of_an_episode_is_compared_sometimes(steps):
    draw = jax.jit(lambda key: regressions._points(steps, key))
    drawn = [np.asarray(draw(key)) for key in jax.random.split(jax.random.key(0), 60)]
    assert {int(x) for points in drawn for x in points} == set(range(steps))


def test_an_unknown_part_is_named():
    with pytest.raises(ValueError, match=r"'thrust'.*trust, calibration"):
        check_parts(["u", "thrust"])


def test_what_a_better_policy_does_is_no_contribution():
    """Episodes of later policies end better and look different, for another reason."""
    episodes = []
    for age in range(512):
        rng = np.random.default_rng(age)
        good, late = rng.integers(2), age >= 256
        observation = np.zeros((STEPS + 1, 3))
        observation[1, 0], observation[3, 1] = good, late
        hidden = 3.0 * late  # nothing in the episode earns this
        episodes.append(episode(observation, [0] * (STEPS - 1) + [good + hidden]))
    replay = Replay(slots=2048, batch_size=8, updates_per_episode=2.0)
    spec = EpisodeSpec((3,), np.dtype(np.float32), STEPS, num_actions=2)
    gaps = {}
    for same_age in (True, False):
        method = dataclasses.replace(SMALL, replay=dataclasses.replace(replay, same_age=same_age))
        driver = CreditDriver(
            method, spec, View(), max_episode_steps=STEPS, num_envs=1, key=jax.random.key(0)
        )
        for start in range(0, 512, 16):
            driver.learn(episodes[start : start + 16])
        state = driver.state
        shown = jnp.asarray(np.eye(3, dtype=np.float32)[:, None])
        c = state.scale * state.model.c(state.model.past(shown))[:, 0]
        nothing = state.scale * state.model.c(state.model.past(jnp.zeros((1, 3))))[0]
        gaps[same_age] = np.asarray(c[:2] - nothing)
    assert gaps[True][0] == pytest.approx(1, abs=0.3)
    # Some batches are of both policies, so that it does not vanish.
    assert gaps[True][1] < 0.6 * gaps[False][1]


def test_what_a_better_policy_looks_like_is_no_reason_for_its_rewards():
    """The later policy earns 30, not 1, and often shows a mark at the end that earns nothing."""
    gaps = {}
    for without in ((), ("usual",)):
        driver = make_driver(dataclasses.replace(SMALL, without=without))
        rng = np.random.default_rng(0)
        for late in (False, True) * 60:
            episodes = []
            for _ in range(16):
                mark = rng.random() < (0.8 if late else 0.2)
                observation = np.zeros((STEPS + 1, 3))
                observation[STEPS - 1, 0] = mark
                last = (30.0 if late else 1.0) + rng.normal()
                episodes.append(episode(observation, [0] * (STEPS - 1) + [last]))
            batch = padded(episodes, STEPS, ["action"])
            for _ in range(4):
                driver.state, _ = step(driver.state, batch, 3e-3, jax.random.key(late))
        shown = [episode(np.zeros((STEPS + 1, 3)), [0.0] * STEPS) for _ in range(2)]
        shown[1].observation[STEPS - 1, 0] = 1
        plain, marked = (driver.state.scale * predicted(driver.state, x).b[-1] for x in shown)
        gaps[without] = float(marked - plain)
    assert abs(gaps[()]) < 3
    assert gaps[("usual",)] > 6


def test_an_error_of_b_does_not_come_back_through_the_forecast():
    """b off by 1 at every step is off by 40 in the sum of all steps, which the forecast is to be.

    If that error changed features that both share, it would change b, and so the sum, by more than
    b can learn in the meantime: the model of Key-to-Door ran away within ten updates.
    """
    state = talkative(make_driver().state)
    batch = padded(random_episodes(0, 4), STEPS, ["action"])
    plain, _ = step(state, batch, 1e-3, jax.random.key(1))
    model = eqx.tree_at(lambda m: m.forecast.layers[-1].bias, state.model, jnp.full(1, 40.0))
    after, _ = step(with_model(state, model), batch, 1e-3, jax.random.key(1))
    for name in ("current", "b", "ending"):
        one, other = (jax.tree.leaves(getattr(s.model, name)) for s in (plain, after))
        for x, y in zip(one, other, strict=True):
            np.testing.assert_array_equal(x, y)
    assert np.any(plain.model.forecast.layers[0].weight != after.model.forecast.layers[0].weight)


def test_returns_that_hardly_differ_are_no_unit():
    """The first episodes may all return the same; the model must not blow up on them."""
    driver = make_driver()
    same = [episode(np.zeros((STEPS + 1, 3)), [0] * (STEPS - 1) + [5.0])] * 16
    driver.learn(same)
    assert float(driver.state.scale) > 0.1
    largest = max(float(jnp.abs(x).max()) for x in jax.tree.leaves(driver.state.optimizer))
    assert largest < 1e6


def test_what_scales_observations_does_not_decay():
    spec = EpisodeSpec(
        (3,), np.dtype(np.float32), STEPS, num_actions=2, scale=np.full(3, 0.5, np.float32)
    )
    driver = CreditDriver(
        SMALL, spec, View(), max_episode_steps=STEPS, num_envs=1, key=jax.random.key(0)
    )
    before = np.asarray(driver.state.model.past.torso.layers[0].weight)
    driver.learn(random_episodes(0, 16))
    assert driver.updates
    np.testing.assert_array_equal(driver.state.model.past.scale, 0.5)
    assert np.any(before != driver.state.model.past.torso.layers[0].weight)


def test_rewards_that_come_at_once_are_left_alone():
    """What a state and an action earn at once is explained there; nothing is paid beforehand."""

    def make(rng):
        action = rng.integers(2, size=STEPS)
        return episode(rng.normal(size=(STEPS + 1, 3)), 1.0 * action, action)

    driver = learned(make)
    rng = np.random.default_rng(7)
    credit = np.concatenate([paid_in(driver, make(rng))[1:-1] for _ in range(20)])
    assert np.std(credit) < 0.25


def test_actions_may_be_numbers_or_unknown():
    boxes = make_driver(num_actions=None, action_shape=(2,), action_dtype=np.dtype(np.float32))
    rng = np.random.default_rng(0)
    one = random_episodes(0, 1)[0]
    two = rng.normal(size=(STEPS, 2)).astype(np.float32)
    boxes.learn([dataclasses.replace(one, action=two)] * 4)
    assert boxes.updates > 0
    unknown = make_driver(num_actions=None, action_dtype=None)
    unknown.learn([dataclasses.replace(one, action=None)] * 4)
    assert unknown.updates > 0
    assert np.all(np.isfinite(paid_in(unknown, dataclasses.replace(one, action=None))))


def test_thinned_episodes_pay_the_same_in_all():
    """A transition that was trained on stands for those that were left out."""
    view = View(stride=2)
    spec = EpisodeSpec((3,), np.dtype(np.float32), view.kept(STEPS), num_actions=2, stride=2)
    state = SMALL.init(spec, jax.random.key(0))
    state = eqx.tree_at(lambda s: (s.at_end, s.length), state, (jnp.float32(6.0), jnp.float32(3.0)))
    driver = CreditDriver(
        SMALL, spec, view, max_episode_steps=STEPS, num_envs=1, key=jax.random.key(0)
    )
    driver.state = state
    driver.freeze()  # learning would change what is usual
    one = random_episodes(3, 1)[0]
    time = np.arange(STEPS + 1)[:, None]
    whole = Segment(
        observation=one.observation[:, None],
        first=time == 0,
        last=time == STEPS,
        reward=one.reward[:, None],
        discount=one.discount[:, None],
        action=None if one.action is None else one.action[:, None],
    )
    ((_, credit),) = driver.follow(whole, None)
    paid = np.asarray(credit.reward)[:, 0]
    np.testing.assert_allclose(paid[:-1], 1, atol=1e-5)
    assert paid.sum() == pytest.approx(0, abs=1e-5)


def test_an_error_of_the_baseline_counts_the_same_in_episodes_of_any_length():
    """A mean over steps would have it count less and less as episodes grow longer."""
    errors = []
    for length in (10, 100):
        valid = np.arange(128)[:, None] < np.array([[length, 2 * length // 3]])
        last = valid & ~np.roll(valid, -1, axis=0)
        r, b = np.where(last, 3.0, 0), np.where(valid, 0, 7.0)
        error = regressions._per_episode(jnp.float32((r - b) ** 2), jnp.asarray(valid))
        errors.append(float(error))
    assert errors == [9.0, 9.0]
