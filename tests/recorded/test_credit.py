"""Credit for recorded episodes: what the driver would pay, and it sums to the return."""

import json
from typing import Any

import numpy as np
import pytest

from synthetic_returns.credit.advance.method import Advance
from synthetic_returns.credit.data.episode import Segment
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.episodic.method import Episodic
from synthetic_returns.credit.oracle import Oracle
from synthetic_returns.credit.view import View
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.recorded.credit import Credit
from synthetic_returns.recorded.reading import read_episode
from synthetic_returns.recorded.score import Score
from synthetic_returns.utils.files import RunError
from tests.credit.known_contributions import KINDS, LENGTH, TRUE, make_episodes
from tests.credit.methods import CONSERVING, Linear, Novelty, Taken, Uniform

SMALL: dict[str, Any] = {
    "encoder": TorsoSettings(sizes=(16,)),
    "head_sizes": (16,),
    "learning_rate": 1e-2,
    "replay": Replay(slots=64, batch_size=8, updates_per_episode=1.0),
}
ADVANCE = Advance(**SMALL)
METHODS = [ADVANCE, Episodic(**SMALL), *(k() for k in (Linear, Novelty, Uniform, *CONSERVING))]


def walks(number: int, seed: int = 0, longest: int = 12, scale: float = 1.0) -> list[Any]:
    """Random states; the outcome is what all states before the last contributed, and some luck."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(number):
        steps = int(rng.integers(2, longest + 1))
        states = rng.normal(size=(steps + 1, 3))
        rewards = np.zeros(steps)
        rewards[steps // 2] = rng.normal()
        rewards[-1] = states[:-1, 0].sum() + 0.1 * rng.normal()
        actions = rng.integers(0, 3, steps)
        made.append({"observations": states, "rewards": scale * rewards, "actions": actions})
    return made


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_what_is_paid_is_what_the_driver_pays_step_by_step(method, stride):
    credit = Credit(method, updates=30, view=View(stride=stride)).fit(walks(40))
    driver = credit.driver
    assert driver is not None
    for episode in walks(3, seed=1):
        paid = credit.redistribute(episode)
        assert paid.shape == episode["rewards"].shape
        assert credit._format is not None
        seen = credit._format.convert(read_episode(episode), "it")
        steps, found = len(paid), []
        driver.forget(0)
        for t in range(steps):
            segment = Segment(
                observation=seen.observation[t : t + 2, None],
                first=np.array([[t == 0], [False]]),
                last=np.array([[False], [t == steps - 1]]),
                reward=seen.reward[t : t + 1, None].astype(np.float32),
                discount=np.ones((1, 1), np.float32),
                action=None if seen.action is None else seen.action[t : t + 1, None],
            )
            found += [np.asarray(one.reward) for _, one in driver.follow(segment, None)]
        credits = np.concatenate(found)[:, 0]
        np.testing.assert_allclose(paid, episode["rewards"] + credits, rtol=1e-4, atol=1e-4)
        if method.conserves:
            assert paid.sum() == pytest.approx(episode["rewards"].sum(), abs=1e-9)
            assert np.abs(credits).max() > 1e-3


def test_large_rewards_sum_to_the_return_too():
    credit = Credit(ADVANCE, updates=30).fit(walks(40, scale=1e6))
    for episode in walks(3, seed=1, scale=1e6):
        assert credit.redistribute(episode).sum() == pytest.approx(
            episode["rewards"].sum(), abs=1e-4
        )


def test_contributions_that_are_known_are_found():
    episodes = make_episodes(0, 300, noise=0.1)
    credit = Credit(updates=600).fit(episodes)
    paid: list[list[float]] = [[] for _ in range(KINDS)]
    for episode in make_episodes(1, 50):
        rewards = credit.redistribute(episode)
        for kind, reward in zip(episode.observation[1:-1].argmax(axis=1), rewards, strict=False):
            paid[kind].append(reward)
    assert np.corrcoef([np.mean(x) for x in paid], TRUE)[0, 1] > 0.95
    score = credit.score(make_episodes(2, 100, noise=0.1))
    assert score.explained_variance > 0.6
    assert float(score) == score.explained_variance
    assert abs(score.rewards_alone) < 1e-6
    assert 0.7 < score.slope < 1.4
    explained = credit.explain(episodes[0])
    assert explained.paid.shape == (LENGTH + 1,)
    assert isinstance(explained.paid, np.ndarray)


def test_longer_episodes_come_later():
    credit = Credit(ADVANCE, updates=30).fit(walks(40, longest=7))
    probe = walks(1, seed=3, longest=6)[0]
    before, held = credit.redistribute(probe), len(credit.driver.buffer)
    assert credit.driver.buffer.max_steps == 8
    long = walks(20, seed=4, longest=20)
    assert credit.redistribute(max(long, key=lambda e: len(e["rewards"]))).shape[0] > 14
    np.testing.assert_allclose(credit.redistribute(probe), before, atol=1e-6)
    assert credit.driver.buffer.max_steps == 8  # asking does not need the room
    updates = credit.driver.updates
    credit.partial_fit(long)
    assert credit.driver.buffer.max_steps == 32
    assert credit.driver.updates == updates + 20
    assert len(credit.driver.buffer) == held + 20


def test_a_stream_is_fitted_like_a_list():
    by_list = Credit(ADVANCE, updates=30).fit(walks(40))
    by_stream = Credit(ADVANCE, updates=30).fit(iter(walks(40)))
    probe = walks(1, seed=1)[0]
    np.testing.assert_array_equal(by_list.redistribute(probe), by_stream.redistribute(probe))


def test_it_is_saved_without_pickle(tmp_path):
    credit = Credit(ADVANCE, updates=30, view=View(stride=2), seed=3).fit(walks(40))
    credit.save(tmp_path / "credit.npz")
    with np.load(tmp_path / "credit.npz", allow_pickle=False) as archive:
        assert all(x.dtype.kind != "O" for x in archive.values())
    copy = Credit.load(tmp_path / "credit.npz")
    assert (copy.method, copy.view, copy.updates, copy.seed) == (ADVANCE, View(stride=2), 30, 3)
    for one in (credit, copy):
        one.partial_fit(walks(20, seed=5))
    for episode in walks(3, seed=1):
        np.testing.assert_array_equal(copy.redistribute(episode), credit.redistribute(episode))
    (tmp_path / "other.npz").write_bytes(b"nothing")
    with pytest.raises(RunError, match="damaged, or was not written"):
        Credit.load(tmp_path / "other.npz")


def test_a_file_that_calls_the_longest_episode_otherwise_is_read(tmp_path):
    credit = Credit(ADVANCE, updates=30).fit(walks(40))
    credit.save(tmp_path / "credit.npz")
    with np.load(tmp_path / "credit.npz", allow_pickle=False) as archive:
        arrays = dict(archive)
    about = json.loads(str(arrays["about"]))
    about["format"]["longest"] = about["format"].pop("max_episode_steps")
    arrays["about"] = np.array(json.dumps(about))
    np.savez(tmp_path / "old.npz", allow_pickle=False, **arrays)
    probe = walks(1, seed=1)[0]
    np.testing.assert_array_equal(
        Credit.load(tmp_path / "old.npz").redistribute(probe), credit.redistribute(probe)
    )


def test_fitting_again_begins_anew():
    credit = Credit(ADVANCE, updates=30).fit(walks(40, seed=9)).fit(walks(40))
    probe = walks(1, seed=1)[0]
    np.testing.assert_array_equal(
        credit.redistribute(probe), Credit(ADVANCE, updates=30).fit(walks(40)).redistribute(probe)
    )


def test_few_episodes_are_looked_at_again_and_many_are_not():
    assert Credit(ADVANCE, updates=100).fit(walks(20)).driver.updates == 100
    assert Credit(ADVANCE, updates=10).fit(walks(40)).driver.updates > 30


def test_a_score_by_hand():
    score = Score(np.array([0.0, 1, 2, 3]), np.zeros(4), np.array([1.0, 3, 5, 7]))
    assert score.slope == pytest.approx(2)
    assert score.explained_variance == pytest.approx(
        1 - np.var([1, 2, 3, 4]) / np.var([1, 3, 5, 7])
    )
    assert score.error == pytest.approx(np.sqrt(np.mean(np.square([1, 2, 3, 4]))))
    assert score.calibration(2) == [(0.5, 2.0, 2), (2.5, 6.0, 2)]
    assert "4 episodes" in str(score)
    never_varies = Score(np.zeros(3), np.zeros(3), np.ones(3))
    assert np.isnan(never_varies.explained_variance)
    assert np.isnan(never_varies.slope)


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda: Credit().redistribute(walks(1)[0]), r"nothing was learned yet; call fit"),
        (lambda: Credit(ADVANCE).fit(walks(1)), r"there is 1 episode to learn from; .*at least 2"),
        (lambda: Credit(ADVANCE).fit([]), r"there is no episode to learn from"),
        (
            lambda: Credit(ADVANCE).fit([e | {"rewards": 0 * e["rewards"]} for e in walks(9)]),
            r"all rewards of all 9 episodes are 0, so the outcome is missing",
        ),
        (
            lambda: Credit(ADVANCE, updates=5).fit(walks(9)).score(walks(1)),
            r"there is 1 episode to score on; give at least 2",
        ),
        (lambda: Credit("paper"), r"'paper' is trained with the agent, which redistribution does"),
        (lambda: Credit(Oracle()), r"'oracle' pays the true contributions"),
        (lambda: Credit(Taken()), r"'test-taken' gives an advantage .*; redistribution can change"),
        (lambda: Credit("nothing"), r"credit method"),
        (lambda: Credit(updates=0), r"updates is 0; it must be a whole number of at least 1"),
    ],
)
def test_mistakes_are_named(do, message):
    with pytest.raises(ValueError, match=message):
        do()
