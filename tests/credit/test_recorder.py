"""Episodes are recorded from segments whole: nothing is lost, repeated or moved."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthetic_returns.credit.data.episode import Episode, Segment
from synthetic_returns.credit.data.recorder import EpisodeRecorder
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.types import StepType

LONGEST = 6


def policy(actions):
    """Log-probabilities of two actions that tell what was done."""
    first = (actions % 7 + 1) / 9
    return np.log(np.stack([first, 1 - first], axis=-1)).astype(np.float32)


def make_stream(rows, seed):
    """Environments side by side whose episodes have the given lengths, and the episodes.

    Every step has an observation, an action and a reward of its own, so that nothing can be
    confused. What the episodes should be is written down where they are made, not recomputed from
    the stream.
    """
    rng = np.random.default_rng(seed)
    streams, episodes = [], []
    for row, lengths in enumerate(rows):
        steps = []
        for number, length in enumerate(lengths):
            numbers = rng.choice(10**6, length + 1, replace=False)
            kinds = [StepType.FIRST, *[StepType.MID] * (length - 1), StepType.LAST]
            rewards = [0.0, *rng.normal(size=length)]  # of arriving
            actions = rng.choice(10**6, length + 1)
            discounts = np.ones(length + 1)
            discounts[-1] = number % 2  # every other one terminates
            begin = len(steps)
            steps += zip(kinds, numbers, rewards, discounts, actions, strict=True)
            episode = Episode(
                observation=np.array([[row, number] for number in numbers], np.float32),
                reward=np.array(rewards[1:], np.float32),
                discount=np.array(discounts[1:], np.float32),
                action=actions[:-1].astype(np.int32),
                log_probs=policy(actions[:-1]),
                value=2 * actions[:-1].astype(np.float32),
            )
            episodes.append((row, begin + length, episode))
        streams.append(steps)
    return streams, episodes


def segment(part):
    """A segment of a part of the streams."""
    columns = np.moveaxis(np.array(part, np.float64), (0, 1, 2), (2, 1, 0))
    kinds, numbers, rewards, discounts, actions = columns
    row = np.broadcast_to(np.arange(len(part)), numbers.shape)
    return Segment(
        observation=np.stack([row, numbers], axis=-1).astype(np.float32),
        first=kinds == StepType.FIRST,
        last=kinds == StepType.LAST,
        reward=rewards[1:].astype(np.float32),
        discount=discounts[1:].astype(np.float32),
        action=actions[:-1].astype(np.int32),
        log_probs=policy(actions[:-1]),
        value=2 * actions[:-1].astype(np.float32),
        contribution=numbers[1:].astype(np.float32),
    )


def segments(streams, length):
    """The streams in consecutive segments."""
    total = min(map(len, streams))
    for start in range(0, (total - 1) // length * length, length):
        yield segment([stream[start : start + length + 1] for stream in streams])


def record_all(streams, length, **view):
    """Records the streams in segments; also how many steps were used."""
    chosen = View(**view)
    spec = EpisodeSpec((2,), np.dtype(np.float32), chosen.kept(LONGEST), 2, has_policy=True)
    recorder = EpisodeRecorder(spec, chosen, len(streams), LONGEST)
    found = [one for part in segments(streams, length) for one in recorder.record(part)]
    return found, (min(map(len, streams)) - 1) // length * length


def assert_same(got, want):
    for name in ("observation", "reward", "discount", "action", "log_probs", "value"):
        np.testing.assert_array_equal(getattr(got, name), getattr(want, name), name)


def test_an_episode_whose_start_was_not_seen_is_left_out():
    streams, episodes = make_stream([[6, 4, 5, 3]], seed=0)
    found, _ = record_all([streams[0][2:]], 1)
    want = [episode for _, _, episode in episodes[1:]]
    for got, episode in zip(found, want, strict=True):
        assert_same(got.episode, episode)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    rows=st.lists(
        st.lists(st.integers(1, LONGEST), min_size=8, max_size=12), min_size=1, max_size=3
    ),
    length=st.sampled_from([1, 3, 7]),
)
def test_nothing_is_lost_duplicated_or_moved(rows, length):
    streams, episodes = make_stream(rows, seed=0)
    found, used = record_all(streams, length)
    finished = [(row, end, episode) for row, end, episode in episodes if end <= used]
    assert len(found) == len(finished)
    for row in range(len(rows)):
        want = [(end, episode) for owner, end, episode in finished if owner == row]
        got = [one for one in found if one.row == row]
        for mine, (end, true) in zip(got, want, strict=True):
            assert_same(mine.episode, true)
            assert mine.steps == len(true)
            assert mine.at == (end - 1) % length


def thinned_by_hand(episode, stride):
    """Every n-th state and, in a loop, the rewards until the next one; the terminal state."""
    observation, reward, discount = [], [], []
    for t in range(len(episode)):
        if t % stride == 0:
            observation.append(episode.observation[t])
            reward.append(0.0)
            discount.append(1.0)
        reward[-1] += episode.reward[t]
        discount[-1] *= episode.discount[t]
    return np.array([*observation, episode.observation[-1]]), np.array(reward), discount


@pytest.mark.parametrize("stride", [1, 2, 4])
@pytest.mark.parametrize("length", [1, 3])
def test_a_thinned_episode_keeps_every_nth_state_and_all_reward(stride, length):
    streams, episodes = make_stream([[6, 1, 5, 4, 2], [3, 6, 6, 2, 4]], seed=0)
    found, used = record_all(streams, length, stride=stride)
    whole = [episode for _, end, episode in episodes if end <= used]
    assert len(found) == len(whole) > 6
    for episode in whole:
        observation, reward, discount = thinned_by_hand(episode, stride)
        (mine,) = [f for f in found if np.array_equal(f.episode.observation, observation)]
        np.testing.assert_allclose(mine.episode.reward, reward, rtol=1e-5)
        np.testing.assert_array_equal(mine.episode.discount, discount)
        np.testing.assert_array_equal(mine.episode.action, episode.action[::stride])
        assert mine.episode.stride == stride
        assert mine.steps == len(episode)


def test_the_last_reward_of_an_episode_that_was_cut_off_can_be_another():
    streams, _ = make_stream([[4, 4, 4, 4]], seed=3)  # every other one terminates
    found, _ = record_all(streams, 2, truncated_reward=-7.0)
    kept, _ = record_all(streams, 2)
    assert len(found) == len(kept) > 2
    for number, (changed, same) in enumerate(zip(found, kept, strict=True)):
        cut_off = number % 2 == 1
        assert (changed.episode.reward[-1] == -7) == cut_off
        steps = slice(0, -1) if cut_off else slice(None)
        np.testing.assert_array_equal(changed.episode.reward[steps], same.episode.reward[steps])


def test_episodes_are_copies():
    streams, _ = make_stream([[2, 2, 2]], seed=1)
    found, _ = record_all(streams, 1)
    assert not np.array_equal(found[0].episode.reward, found[1].episode.reward)


def test_a_longer_episode_than_promised_is_refused():
    streams, _ = make_stream([[LONGEST + 1]], seed=2)
    with pytest.raises(ValueError, match=rf"longer than {LONGEST} steps.*max_episode_steps"):
        record_all(streams, LONGEST + 1)
