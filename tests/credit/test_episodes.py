"""Episodes are cut out of unrolls whole, and the buffer keeps the newest and a fair sample."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthetic_returns.credit.episodes import Episode, EpisodeBuffer, EpisodeCutter, bucket
from synthetic_returns.types import StepType, TimeStep

LONGEST = 6


def make_stream(rows, seed):
    """Environments side by side whose episodes have the given lengths, and the episodes.

    Every step has an observation and a reward of its own, so that nothing can be confused. What
    the episodes should be is written down where they are made, not recomputed from the stream.
    """
    rng = np.random.default_rng(seed)
    streams, episodes = [], []
    for row, lengths in enumerate(rows):
        steps = []
        for length in lengths:
            numbers = rng.choice(10**6, length + 1, replace=False)
            kinds = [StepType.FIRST, *[StepType.MID] * (length - 1), StepType.LAST]
            rewards = [0.0, *rng.normal(size=length)]  # of arriving
            begin = len(steps)
            steps += zip(kinds, numbers, rewards, strict=True)
            observation = np.array([[row, number] for number in numbers[:-1]], np.float32)
            reward = np.array(rewards[1:], np.float32)
            episodes.append((row, begin + length, Episode(observation, reward)))
        streams.append(steps)
    return streams, episodes


def cut_all(streams, unroll_length, discount=1.0, **choices):
    """Cuts the streams in unrolls; also how many steps were used."""
    batch, total = len(streams), min(map(len, streams))
    unrolls = (total - 1) // unroll_length
    cutter = EpisodeCutter((2,), np.float32, batch, LONGEST, **choices)
    found = []
    for start in range(0, unrolls * unroll_length, unroll_length):
        part = [stream[start : start + unroll_length + 1] for stream in streams]
        kinds, numbers, rewards = np.moveaxis(np.array(part, np.float64), (0, 1, 2), (2, 1, 0))
        row = np.broadcast_to(np.arange(batch), numbers.shape)
        timestep = TimeStep(
            step_type=jnp.asarray(kinds, jnp.int8),
            reward=jnp.asarray(rewards, jnp.float32),
            discount=jnp.full(rewards.shape, discount),
            observation=jnp.asarray(np.stack([row, numbers], axis=-1), jnp.float32),
            events={},
        )
        found += list(cutter.cut(timestep))
    return found, unrolls * unroll_length


def test_an_episode_whose_start_was_not_seen_is_left_out():
    streams, episodes = make_stream([[6, 4, 5, 3]], seed=0)
    found, _ = cut_all([streams[0][2:]], 1)
    want = [episode for _, _, episode in episodes[1:]]
    for got, episode in zip(found, want, strict=False):
        np.testing.assert_array_equal(got.observation, episode.observation)
        np.testing.assert_array_equal(got.reward, episode.reward)
    assert len(found) == len(want)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    rows=st.lists(
        st.lists(st.integers(1, LONGEST), min_size=8, max_size=12), min_size=1, max_size=3
    ),
    unroll_length=st.sampled_from([1, 3, 7]),
)
def test_no_reward_is_lost_duplicated_or_moved(rows, unroll_length):
    streams, episodes = make_stream(rows, seed=0)
    found, used = cut_all(streams, unroll_length)
    finished = [(row, episode) for row, end, episode in episodes if end <= used]
    assert len(found) == len(finished)
    for row in range(len(rows)):
        want = [episode for owner, episode in finished if owner == row]
        got = [episode for episode in found if episode.observation[0, 0] == row]
        for mine, true in zip(got, want, strict=True):
            np.testing.assert_array_equal(mine.observation, true.observation)
            np.testing.assert_array_equal(mine.reward, true.reward)


def thinned_by_hand(episode, every):
    """Every n-th state and, in a loop, the rewards until the next one."""
    observation, reward = [], []
    for t in range(len(episode)):
        if t % every == 0:
            observation.append(episode.observation[t])
            reward.append(0.0)
        reward[-1] += episode.reward[t]
    return np.array(observation), np.array(reward)


@pytest.mark.parametrize("every", [1, 2, 4])
@pytest.mark.parametrize("unroll_length", [1, 3])
def test_a_thinned_episode_keeps_every_nth_state_and_all_reward(every, unroll_length):
    streams, episodes = make_stream([[6, 1, 5, 4, 2], [3, 6, 6, 2, 4]], seed=0)
    found, used = cut_all(streams, unroll_length, every=every)
    whole = [episode for _, end, episode in episodes if end <= used]
    assert len(found) == len(whole) > 6
    for episode in whole:
        observation, reward = thinned_by_hand(episode, every)
        (mine,) = [f for f in found if np.array_equal(f.observation, observation)]
        np.testing.assert_allclose(mine.reward, reward, rtol=1e-6)
        again = episode.thinned(every)
        np.testing.assert_array_equal(again.observation, observation)
        np.testing.assert_allclose(again.reward, reward, rtol=1e-6)
        assert mine.every == again.every == every
        assert mine.thinned(every) is mine
    if every > 1:
        with pytest.raises(ValueError, match=rf"{every} steps apart and have to be 3"):
            found[0].thinned(3)


def test_the_last_reward_of_an_episode_that_was_cut_off_can_be_another():
    streams, _ = make_stream([[4, 4, 4]], seed=3)
    found, _ = cut_all(streams, 2, truncated_reward=-7.0)  # no step of the stream terminates
    assert [episode.reward[-1] for episode in found] == [-7.0] * len(found)
    finished, _ = cut_all(streams, 2, discount=0.0, truncated_reward=-7.0)
    kept, _ = cut_all(streams, 2)
    for episode, same in zip(finished, kept, strict=True):
        np.testing.assert_array_equal(episode.reward, same.reward)
    np.testing.assert_array_equal(found[0].reward[:-1], kept[0].reward[:-1])


def test_episodes_are_copies():
    streams, _ = make_stream([[2, 2, 2]], seed=1)
    found, _ = cut_all(streams, 1)
    assert not np.array_equal(found[0].reward, found[1].reward)


def test_a_longer_episode_than_promised_is_refused():
    streams, _ = make_stream([[LONGEST + 1]], seed=2)
    with pytest.raises(ValueError, match=rf"longer than {LONGEST} steps.*episode_steps"):
        cut_all(streams, LONGEST + 1)


def numbered(number, length=3):
    """An episode that can be recognised."""
    return Episode(np.full((length, 1), number, np.float32), np.full(length, number, np.float32))


def held(buffer):
    """The numbers of the episodes in the queue and in the archive."""
    numbers = [
        int(row[0]) if n else None for row, n in zip(buffer.reward, buffer.length, strict=True)
    ]
    queue = buffer.slots // 2
    return numbers[:queue], [number for number in numbers[queue:] if number is not None]


@pytest.mark.parametrize("slots", [2, 8, 9])
def test_the_newest_are_always_held_and_nothing_twice(slots):
    rng = np.random.default_rng(0)
    buffer = EpisodeBuffer((1,), np.float32, slots, 5)
    size = buffer.observation.nbytes
    for number in range(1, 40):
        buffer.add(numbered(number), rng)
        queue, archive = held(buffer)
        newest = range(max(1, number - slots // 2 + 1), number + 1)
        assert {*queue} - {None} == {*newest}
        assert len({*archive}) == len(archive)
        assert not {*archive} & {*queue}
        assert len(buffer) == min(number, slots)
    assert buffer.observation.nbytes == size
    assert buffer.bytes == slots * 3 * (4 + 4)


def test_the_archive_is_even_in_the_logarithm_of_time():
    """As many episodes from 8 to 16 as from 16 to 32, 32 to 64 and 64 to 128."""
    trials, counts = 2000, np.zeros(133)
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        buffer = EpisodeBuffer((1,), np.float32, 8, 1)
        for number in range(1, 133):
            buffer.add(numbered(number, 1), rng)
        counts[held(buffer)[1]] += 1
    octaves = np.array([counts[n + 1 : 2 * n + 1].sum() for n in (8, 16, 32, 64)])
    expected = trials * 4 * np.log(2) / np.log(128)
    np.testing.assert_allclose(octaves, expected, rtol=0.12)


def test_samples_are_whole_episodes_and_all_are_drawn():
    rng = np.random.default_rng(0)
    buffer = EpisodeBuffer((1,), np.float32, 6, 12)
    for number in range(1, 12):
        buffer.add(numbered(number, length=12 - number), rng)  # shorter and shorter
    observation, reward, length = buffer.sample(200, rng)
    assert observation.shape[:2] == reward.shape == (bucket(int(length.max()), 12), 200)
    numbers = reward[0].astype(int)
    assert {*numbers} == {*held(buffer)[0], *held(buffer)[1]}
    np.testing.assert_array_equal(length, 12 - numbers)
    for column, (number, steps) in enumerate(zip(numbers, length, strict=True)):
        assert np.all(reward[:steps, column] == number)
        assert np.all(observation[:steps, column] == number)
        assert not np.any(reward[steps:, column])


def test_few_sizes_and_little_padding():
    lengths = range(1, 1001)
    sizes = [bucket(length, 1000) for length in lengths]
    assert len({*sizes}) < 40
    for length, size in zip(lengths, sizes, strict=True):
        assert length <= size <= 1.5 * length
    assert bucket(7, 7) == 7


def test_a_buffer_too_small_to_have_an_archive_is_refused():
    with pytest.raises(ValueError, match=r"slots is 1.*at least 2"):
        EpisodeBuffer((1,), np.float32, 1, 5)
