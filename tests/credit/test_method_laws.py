"""Laws that hold for every credit method beside the agent, registered or made up here."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.data.episode import EpisodeBatch, Segment
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.explainer import EpisodeExplainer, Rollout
from synthetic_returns.credit.method import Assigner, CreditMethod, Gives, Need
from synthetic_returns.credit.registry import find_method, method_names
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import StepType, TimeStep
from tests.credit.known_advantages import WORTH, advantages_of, make_decisions
from tests.credit.known_contributions import KINDS, LENGTH, SMALL, TRUE, episode_of, make_episodes
from tests.credit.methods import CONSERVING, REPLAY, Linear, Novelty, Taken, Uniform
from tests.credit.test_auxiliary_laws import AUXILIARY
from tests.credit.test_recorder import LONGEST, make_stream, segments
from tests.trees import arrays


def small(name: str, **settings: Any) -> Any:
    """A registered method with a small encoder and few episodes."""
    encoder: Any = TorsoSettings(sizes=(16,))
    return find_method(name)(encoder=encoder, replay=REPLAY, **settings)  # pyright: ignore


def quick(name: str, **settings: Any) -> CreditMethod:
    """A registered method that learns in a few hundred updates of a small encoder."""
    method: Any = find_method(name)()
    replay = dataclasses.replace(method.replay, slots=256, batch_size=16, updates_per_episode=0.5)
    return dataclasses.replace(
        method, encoder=TorsoSettings(sizes=(32,)), learning_rate=3e-3, replay=replay, **settings
    )


OURS = {name: find_method(name) for name in method_names()}
LEARNED = [kind for kind in OURS.values() if issubclass(kind, CreditMethod)]
PAYING = [kind for kind in LEARNED if kind.gives is Gives.REWARD]
ADVISING = [kind for kind in LEARNED if kind.gives is Gives.ADVANTAGE]
# Small enough for a test; a method that is not listed is taken as it comes.
SMALLER: dict[str, Assigner] = {
    "episodic": dataclasses.replace(SMALL, replay=REPLAY),
    "advance": small("advance"),
    "rudder": small("rudder", lstm_size=8, gated=False),  # random returns are worth nothing to it
    "decomposition": small("decomposition", head_sizes=(8,)),
    "rrd": small("rrd", head_sizes=(8,), subsequence=3, unbiased=True),
    "uniform": small("uniform", head_sizes=(8,)),
    "hca": small("hca", rank=4, most=8),
    "cocoa": small("cocoa", rank=4, most=8),
    "pairwise": small("pairwise", rank=4),
    "sa-alone": small("sa-alone", rank=4),
    "secret": small("secret", width=8),
    "tvt": small("tvt", code=8, horizon=0, threshold=0.0),  # nothing is worth a sharp read
}
# What the laws about learning take instead; the others as they come.
TAUGHT = {
    "episodic": SMALL,
    "advance": quick("advance"),
    "rudder": quick("rudder", lstm_size=16),
    "decomposition": quick("decomposition"),
    "rrd": quick("rrd"),
    "uniform": quick("uniform"),
    "hca": quick("hca", rank=4),
    "cocoa": quick("cocoa", rank=4),
    "pairwise": quick("pairwise", rank=4),
    "sa-alone": quick("sa-alone", rank=4),
    # All states contribute alike, so reads are not sharp; all that matters lies within 8 steps.
    "tvt": quick("tvt", horizon=0, threshold=0.0),
}
METHODS: list[Assigner] = [
    *(SMALLER.get(kind.name, kind()) for kind in OURS.values() if issubclass(kind, Assigner)),
    *(k() for k in (Linear, Novelty, Uniform, Taken, *CONSERVING)),
]
EACH = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
EACH_PAYING = pytest.mark.parametrize("kind", PAYING, ids=lambda kind: kind.name)
EACH_ADVISING = pytest.mark.parametrize("kind", ADVISING, ids=lambda kind: kind.name)

# Methods that learn nothing: the laws about learning are not for them.
UNTAUGHT = {"none", "oracle"}
BATCHES = 40  # of 16 episodes, until a method that pays has learned what it can
ROWS = [[6, 3, 5, 4, 6, 2, 6], [2, 5, 6, 6, 1, 4, 5], [5, 5, 4, 6, 3, 6, 6]]


def make_driver(
    method: Assigner, seed: int = 0, view: View | None = None, **settings: Any
) -> CreditDriver:
    """For the streams of ``make_stream``."""
    view = view or View()
    spec = EpisodeSpec(
        (2,), np.dtype(np.float32), view.kept(LONGEST), num_actions=2, has_policy=True,
        has_contributions=True, stride=view.stride,
    )  # fmt: skip
    return CreditDriver(method, spec, view, max_episode_steps=LONGEST, num_envs=len(ROWS),
                        key=jax.random.key(seed), **settings)  # fmt: skip


def streams(scale: float = 1.0) -> Any:
    """Segments of numbered states, small enough to learn from."""
    made, _ = make_stream(ROWS, seed=3)

    def small(step):
        kind, number, reward, discount, action = step
        return kind, number / 1e6, scale * reward, discount, action % 2

    return [[small(step) for step in row] for row in made]


def credit_of(
    driver: CreditDriver, length: int, rows: Any = None, followed: int = 0, paid: int = 0
) -> np.ndarray:
    """The credit of all transitions of the streams, in segments of a length.

    Args:
      driver: follows them.
      length: of the segments.
      rows: the streams, if they are not those of ``streams``.
      followed: how many segments came before.
      paid: of how many of these the credit was given before.
    """
    parts = []
    for number, part in enumerate(segments(rows or streams(), length), followed):
        for item, credit in driver.follow(part, number):
            assert item == paid + len(parts)  # in order, none left out
            given = [x for x in (credit.reward, credit.advantage) if x is not None]
            assert len(given) == 1
            parts.append(np.asarray(given[0]))
    return np.concatenate(parts)


def test_every_registered_method_has_its_laws():
    taught = {method.name for method in (*PAYING, *ADVISING, *AUXILIARY)}
    assert not taught & UNTAUGHT
    assert taught | UNTAUGHT == set(OURS)
    beside = {name for name, kind in OURS.items() if issubclass(kind, Assigner)}
    assert beside <= {method.name for method in METHODS}


@EACH
def test_cutting_episodes_into_other_segments_changes_nothing(method):
    drivers = {length: make_driver(method) for length in (1, 4, 13)}
    found = {}
    for length, driver in drivers.items():
        credit_of(driver, 1)  # learn the same
        for recorder in driver.recorders:
            recorder.forget()
        driver.forget(0)
        driver.learn = lambda episodes: None  # and no more
        found[length] = credit_of(driver, length)
    steps = min(len(x) for x in found.values())
    assert steps > 10
    assert np.any(found[1][:steps])
    for length in (4, 13):
        np.testing.assert_allclose(found[length][:steps], found[1][:steps], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "method",
    [method for method in METHODS if type(method).resume is not Assigner.resume],
    ids=lambda method: method.name,
)
def test_single_transitions_are_credited_like_streams(method):
    driver = make_driver(method)
    credit_of(driver, 1)
    driver.forget(0)
    driver.freeze()
    time, compared = np.zeros(len(ROWS), int), 0
    for part, paid in zip(segments(streams(), 1), credit_of(driver, 1), strict=True):
        time = np.where(part.first[0], 0, time)
        within = ~part.last[0] & ~part.last[1]
        source, destination = np.asarray(part.observation)
        alone = driver.credit_at(source, destination, np.asarray(part.action)[0], time)
        np.testing.assert_allclose(alone[within], paid[within], rtol=1e-5, atol=1e-6)
        time, compared = time + 1, compared + within.sum()
    assert compared > 20


@EACH
@pytest.mark.parametrize("learn_every", [None, 5])
def test_a_snapshot_goes_on_like_the_original(method, learn_every):
    rows = streams()
    original, copy = (make_driver(method, learn_every=learn_every) for _ in range(2))
    half = [row[:21] for row in rows]  # in the middle of all three episodes
    later = [row[20:] for row in rows]
    paid = len(credit_of(original, 4, half)) // 4
    assert paid == (4 if Need.WHOLE_EPISODES in method.needs else 5)
    if learn_every and isinstance(method, CreditMethod):
        assert 0 < len(original.waiting) < learn_every
    snapshot = jax.tree.map(lambda x: np.array(x) if isinstance(x, np.ndarray) else x,
                            original.snapshot())  # fmt: skip
    snapshot["state"] = jax.tree.map(
        lambda x: jnp.array(x) if eqx.is_array(x) else x, snapshot["state"]
    )
    copy.restore(snapshot)
    mine, yours = (credit_of(driver, 4, later, 5, paid) for driver in (original, copy))
    np.testing.assert_array_equal(mine, yours)
    assert original.updates == copy.updates
    assert (copy.updates > 0) == isinstance(method, CreditMethod)
    want, got = arrays(original.snapshot()), arrays(copy.snapshot())
    assert want.keys() == got.keys()
    for name, array in want.items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)


@EACH
def test_terminal_states_earn_nothing_but_pay_back_advances(method):
    driver = make_driver(method)
    credit_of(driver, 1)
    parts = list(segments(streams(), 1))
    driver.forget(0)
    credit = credit_of(driver, 1)
    last = np.concatenate([part.last[1:] for part in parts])[: len(credit)]
    outside = np.concatenate([part.last[:-1] for part in parts])[: len(credit)]
    assert last.any()
    assert outside.any()
    if method.conserves:
        advanced = np.zeros(len(ROWS))
        for paid, ends in zip(credit, last, strict=True):
            np.testing.assert_allclose(paid[ends], -advanced[ends], rtol=1e-4, atol=1e-5)
            advanced = np.where(ends, 0, advanced + paid)
    elif method.gives is Gives.REWARD:
        assert not np.any(credit[last])
    assert not np.any(credit[outside])
    assert np.any(credit)


@EACH
def test_nothing_is_compiled_again_after_warm_up(method, monkeypatch):
    driver = make_driver(method)
    for _ in range(3):  # until episodes of every length have been drawn
        credit_of(driver, 4)
        driver.forget(0)
    traced = []
    learns = ("learn", "examine") if isinstance(method, CreditMethod) else ()
    for name in (*learns, "assign"):
        function = getattr(type(method), name)

        def counted(self, *args, function=function, name=name):
            traced.append(name)
            return function(self, *args)

        monkeypatch.setattr(type(method), name, counted)
    credit_of(driver, 4)
    assert not traced


@EACH
def test_it_is_explained(method):
    driver = make_driver(method)
    credit_of(driver, 1)
    time, batch = LONGEST + 1, 2
    kinds = np.full((time, batch), StepType.MID)
    kinds[0], kinds[LONGEST, 0], kinds[3, 1] = StepType.FIRST, StepType.LAST, StepType.LAST
    rng = np.random.default_rng(0)
    timestep = TimeStep(
        step_type=jnp.asarray(kinds, jnp.int8),
        reward=jnp.asarray(rng.normal(size=(time, batch)), jnp.float32),
        discount=jnp.ones((time, batch)),
        observation=jnp.asarray(rng.normal(size=(time, batch, 2)), jnp.float32),
        events={},
        contribution=jnp.asarray(rng.normal(size=(time, batch)), jnp.float32),
    )
    zeros = jnp.zeros((time - 1, batch))
    log_pi = jnp.full((time - 1, batch, 2), jnp.log(0.5))
    played = Rollout(timestep, jnp.zeros((time - 1, batch), jnp.int32), log_pi, zeros)
    credit = EpisodeExplainer(driver.state, method, View())
    explanation = eqx.filter_jit(credit.explain)(played)
    assert explanation.credit in explanation.terms
    assert explanation.paid.shape[:2] == (time, batch)
    assert not np.any(explanation.paid[LONGEST, 0])
    assert not np.any(explanation.paid[3, 1])
    thinned = EpisodeExplainer(driver.state, method, View(stride=2))
    assert eqx.filter_jit(thinned.explain)(played).paid.shape[:2] == (time, batch)


def held_states(seed: int) -> EpisodeBatch:
    """Episodes of five steps whose states, and what was done in them, last for two steps each."""
    rng, batch = np.random.default_rng(seed), len(ROWS)
    steps = np.array([0, 0, 2, 2, 4])
    observation = rng.normal(size=(6, batch, 2)).astype(np.float32)[[0, 2, 2, 4, 4, 5]]
    reward, value, contribution = rng.normal(size=(3, 5, batch)).astype(np.float32)
    action = rng.integers(2, size=(5, batch)).astype(np.int32)[steps]
    return EpisodeBatch(
        observation=jnp.asarray(observation),
        reward=jnp.asarray(reward / 100),  # what is less than usual hides no credit
        discount=jnp.ones((5, batch)),
        length=jnp.full(batch, 5, jnp.int32),
        action=jnp.asarray(action),
        log_probs=jnp.full((5, batch, 2), jnp.log(0.5)),
        value=jnp.asarray(value),
        contribution=jnp.asarray(contribution),
    )


@pytest.mark.parametrize(
    "method",
    [
        method
        for method in METHODS
        if method.gives is Gives.REWARD
        and Need.EVERY_STATE not in method.needs
        and (method.name in OURS or type(method) is Linear)
    ],
    ids=lambda method: method.name,
)
def test_thinned_episodes_are_paid_what_they_are_explained_to_earn(method):
    """Not exactly: of a transition that was left out, source or action may be another."""
    view = View(stride=2)
    driver = make_driver(method, view=view)
    credit_of(driver, 1)
    driver.freeze()
    explain = eqx.filter_jit(lambda state, episodes: method.explain(state, view.thin(episodes)))
    paid, explained = [], []
    for seed in range(8):
        driver.forget(0)
        episodes = held_states(seed)
        ((_, credit),) = driver.follow(Segment.of_episodes(**vars(episodes)), None)
        paid.append(np.asarray(credit.reward)[:-1].sum(axis=0))
        explained.append(np.asarray(explain(driver.state, episodes).paid)[1:-1].sum(axis=0))
    paid, explained = np.ravel(paid), np.ravel(explained)
    assert np.any(explained)
    assert 0.8 < (paid * explained).sum() / np.square(explained).sum() < 1.25


def learner(kind: type[CreditMethod]) -> CreditDriver:
    """A driver of a registered method for episodes whose contributions are known."""
    method = TAUGHT.get(kind.name, kind())
    spec = EpisodeSpec((KINDS,), np.dtype(np.float32), LENGTH, num_actions=2, has_policy=True)
    return CreditDriver(method, spec, View(), max_episode_steps=LENGTH, num_envs=1,
                        key=jax.random.key(0))  # fmt: skip


def with_policy(episodes: list[Any]) -> list[Any]:
    """With actions and what a policy says, for methods that need them."""
    n = np.zeros(LENGTH, np.float32)
    return [
        dataclasses.replace(
            e, action=n.astype(np.int32), log_probs=np.log(np.full((LENGTH, 2), 0.5, np.float32)),
            value=n,
        )
        for e in episodes
    ]  # fmt: skip


@functools.cache
def taught(
    kind: type[CreditMethod],
    contribution: tuple[float, ...] = tuple(TRUE),
    *,
    noise: float,
    scale: float = 1.0,
) -> np.ndarray:
    """What a method pays for a state of each kind, after learning."""
    driver = learner(kind)
    for batch in range(BATCHES):
        episodes = make_episodes(batch, 16, np.array(contribution, np.float32), noise, scale)
        driver.learn(with_policy(episodes))
    paid: list[list[float]] = [[] for _ in range(KINDS)]
    for episode in with_policy(make_episodes(1000, 32, scale=scale)):
        credit = np.asarray(driver._credit_of(episode).reward)[:, 0]
        for kind_of_state, value in zip(
            episode.observation[1:-1].argmax(axis=1), credit[:-1], strict=True
        ):
            paid[kind_of_state].append(float(value))
    return np.array([np.mean(values) for values in paid])


@EACH_PAYING
def test_contributions_that_are_known_are_found(kind):
    paid = taught(kind, noise=0.5)
    assert np.corrcoef(paid, TRUE)[0, 1] > 0.95


@EACH_PAYING
def test_the_unit_of_reward_changes_nothing_but_the_unit(kind):
    one, thousand = taught(kind, noise=0.5), taught(kind, noise=0.5, scale=1000.0)
    np.testing.assert_allclose(thousand / 1000, one, atol=0.15 * np.ptp(one))


@EACH_PAYING
def test_noise_earns_next_to_nothing(kind):
    paid = taught(kind, (0.0,) * KINDS, noise=1.0)
    assert np.ptp(paid) < 0.1


@functools.cache
def advised(kind: type[CreditMethod], worth: tuple[float, ...] = WORTH, *, noise: float = 0.0,
            scale: float = 1.0) -> np.ndarray:  # fmt: skip
    """The mean advantage of each action in a state of each kind, after learning."""
    driver = learner(kind)
    for batch in range(60):
        driver.learn(make_decisions(batch, 16, worth, noise, scale))
    total, number = np.zeros((KINDS, 2)), np.zeros((KINDS, 1))
    for episode in make_decisions(1000, 64, worth, noise, scale):
        advantage = np.asarray(driver._credit_of(episode).advantage)[:-1, 0]
        kinds = episode.observation[:-2].argmax(axis=1)
        np.add.at(total, kinds, advantage)
        np.add.at(number, kinds, 1)
    return total / number


@EACH_ADVISING
def test_advantages_that_are_known_are_found(kind):
    found, want = advised(kind), advantages_of(WORTH)
    assert np.corrcoef(found.ravel(), want.ravel())[0, 1] > 0.95
    slope = (found * want).sum() / (want**2).sum()
    assert 0.6 < slope < 1.4  # in units of reward


@EACH_ADVISING
def test_the_unit_of_reward_is_that_of_advantages(kind):
    one, thousand = advised(kind), advised(kind, scale=1000.0)
    np.testing.assert_allclose(thousand / 1000, one, atol=0.15 * np.ptp(one))


@EACH_ADVISING
def test_noise_is_no_advantage(kind):
    assert np.ptp(advised(kind, (0.0,) * KINDS, noise=1.0)) < 0.3


def test_an_episode_that_was_not_seen_from_its_start_is_not_waited_for():
    driver = make_driver(Uniform())
    rows = [row[1:] for row in streams()]
    credit = credit_of(driver, 2, rows)
    assert len(credit) > 10
    for row, lengths in enumerate(ROWS):
        assert not np.any(credit[: lengths[0] - 1, row])
        assert np.any(credit[:, row])


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_hindsight_pays_the_whole_return_of_every_episode(stride):
    """A uniform share for each step adds up to the return, less what the terminal state had."""
    driver = make_driver(Uniform(), view=View(stride=stride))
    made, episodes = make_stream(ROWS, seed=3)
    credit = credit_of(driver, 4, made)
    finished = [(row, end, e) for row, end, e in episodes if end <= len(credit)]
    assert len(finished) > 5
    for row, end, episode in finished:
        kept = -(-len(episode) // stride)
        paid = credit[end - len(episode) : end, row].sum()
        mean = episode.reward.sum() / kept
        assert paid == pytest.approx(mean * (kept - 1), rel=1e-3, abs=1e-4)


def test_advantages_stand_where_the_actions_were_taken():
    driver = make_driver(Taken())
    rows = streams()
    credit = credit_of(driver, 4, rows)
    _, episodes = make_stream(ROWS, seed=3)
    for row, end, episode in episodes:
        if end > len(credit):
            continue
        total = episode.reward.sum()
        for t in range(len(episode)):
            taken = int(rows[row][end - len(episode) + t][4])
            want = np.zeros(2)
            want[taken] = total
            got = credit[end - len(episode) + t, row]
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_what_is_needed_and_not_known_is_refused():
    spec = EpisodeSpec((2,), np.dtype(np.float32), LONGEST, num_actions=None, action_dtype=None)
    with pytest.raises(ValueError, match=r"'test-taken' needs actions that are numbered and the"):
        CreditDriver(Taken(), spec, View(), max_episode_steps=LONGEST, num_envs=1,
                     key=jax.random.key(0))  # fmt: skip


def test_an_episode_can_be_learned_from_by_hand_and_paid_at_once():
    """Updates are made in place: what pays must be what was learned."""
    driver = make_driver(Linear())
    part = next(segments(streams(), 1))
    (_, before), = driver.follow(part, None)  # fmt: skip
    driver.learn([episode_of(np.ones((4, 2), np.float32), [0, 0, 0, 1.0])] * 8)
    (_, after), = driver.follow(part, None)  # fmt: skip
    assert np.any(np.asarray(before.reward) != np.asarray(after.reward))
