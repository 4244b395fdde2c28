"""The buffer keeps the newest episodes and a fair sample of older ones."""

import numpy as np
import pytest

from synthetic_returns.credit.data.buffer import EpisodeBuffer, padded, padded_length
from synthetic_returns.credit.data.episode import Episode
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.utils.buckets import bucket
from synthetic_returns.utils.process_memory import resident_mb


def make_buffer(slots, longest, fields=()):
    return EpisodeBuffer(EpisodeSpec((1,), np.dtype(np.float32), longest), slots, fields)


def numbered(number, length=3):
    """An episode that can be recognised."""
    return Episode(
        observation=np.full((length + 1, 1), number, np.float32),
        reward=np.full(length, number, np.float32),
        discount=np.ones(length, np.float32),
        action=np.full(length, number, np.int32),
    )


def held(buffer):
    """The numbers of the episodes in the queue and in the archive."""
    numbers = [
        int(row[0]) if n else None
        for row, n in zip(buffer.arrays["reward"], buffer.length, strict=True)
    ]
    queue = buffer.slots // 2
    return numbers[:queue], [number for number in numbers[queue:] if number is not None]


@pytest.mark.parametrize("slots", [2, 8, 9])
def test_the_newest_are_always_held_and_nothing_twice(slots):
    rng = np.random.default_rng(0)
    buffer = make_buffer(slots, 5)
    size = buffer.arrays["observation"].nbytes
    for number in range(1, 40):
        buffer.add(numbered(number), rng)
        queue, archive = held(buffer)
        newest = range(max(1, number - slots // 2 + 1), number + 1)
        assert {*queue} - {None} == {*newest}
        assert len({*archive}) == len(archive)
        assert not {*archive} & {*queue}
        assert len(buffer) == min(number, slots)
    assert buffer.arrays["observation"].nbytes == size
    # Three states with a reward and a discount, and the terminal state.
    assert buffer.bytes == slots * (3 * (4 + 4 + 4) + 4)


def test_the_archive_is_even_in_the_logarithm_of_time():
    """As many episodes from 8 to 16 as from 16 to 32, 32 to 64 and 64 to 128."""
    trials, counts = 600, np.zeros(133)
    episodes = [numbered(number, 1) for number in range(1, 133)]
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        buffer = make_buffer(8, 1)
        for episode in episodes:
            buffer.add(episode, rng)
        counts[held(buffer)[1]] += 1
    octaves = np.array([counts[n + 1 : 2 * n + 1].sum() for n in (8, 16, 32, 64)])
    expected = trials * 4 * np.log(2) / np.log(128)
    np.testing.assert_allclose(octaves, expected, rtol=0.12)


def test_samples_are_whole_episodes_and_all_are_drawn():
    rng = np.random.default_rng(0)
    buffer = make_buffer(6, 12, ("action",))
    for number in range(1, 12):
        buffer.add(numbered(number, length=12 - number), rng)  # shorter and shorter
    batch = buffer.sample(200, rng)
    observation, reward, length = (
        np.asarray(x) for x in (batch.observation, batch.reward, batch.length)
    )
    longest = padded_length(int(length.max()), 12)
    assert observation.shape[:2] == (longest + 1, 200)
    assert reward.shape == batch.discount.shape == batch.valid.shape == (longest, 200)
    numbers = reward[0].astype(int)
    assert {*numbers} == {*held(buffer)[0], *held(buffer)[1]}
    np.testing.assert_array_equal(length, 12 - numbers)
    for column, (number, steps) in enumerate(zip(numbers, length, strict=True)):
        assert np.all(reward[:steps, column] == number)
        assert np.all(observation[: steps + 1, column] == number)
        assert np.all(np.asarray(batch.action)[:steps, column] == number)
        assert np.all(np.asarray(batch.valid)[:, column] == (np.arange(longest) < steps))
        assert not np.any(reward[steps:, column])


def test_few_sizes():
    lengths = range(1, 1001)
    sizes = [bucket(length, 1000) for length in lengths]
    assert len({*sizes}) < 12
    for length, size in zip(lengths, sizes, strict=True):
        assert length <= size < 2 * length
    assert bucket(7, 7) == 7
    assert [bucket(number, base=4) for number in (1, 2, 4, 5, 16, 17)] == [1, 4, 4, 16, 16, 64]


def test_batches_are_padded_to_few_lengths_and_fewer_numbers():
    """Episodes that end by failing have any length, and few of them end together."""
    shapes = {
        padded([numbered(1, length=length)] * number, 300).reward.shape
        for length in range(1, 301, 3)
        for number in range(1, 17)
    }
    assert shapes == {(length, number) for length in (64, 128, 256, 300) for number in (1, 4, 16)}
    coarse = {padded_length(length, 300, base=4) for length in range(1, 301)}
    assert coarse == {64, 256, 300}


def test_a_buffer_too_small_to_have_an_archive_is_refused():
    with pytest.raises(ValueError, match=r"slots is 1.*at least 2"):
        make_buffer(1, 5)


def test_episodes_of_about_the_same_age_are_drawn_together():
    rng = np.random.default_rng(0)
    buffer = make_buffer(400, 1)
    for number in range(1, 401):
        buffer.add(numbered(number, 1), rng)
    drawn = [np.asarray(buffer.sample(4, rng, same_age=True).reward)[0] for _ in range(800)]
    assert max(np.ptp(numbers) for numbers in drawn) < 16
    counts = np.histogram(np.concatenate(drawn), bins=20)[0]
    np.testing.assert_allclose(counts, 160, rtol=0.4)  # every age as often as any other


def test_states_of_long_episodes_are_drawn_as_often_as_those_of_short_ones():
    rng = np.random.default_rng(0)
    buffer = make_buffer(400, 9)
    for number in range(1, 401):
        buffer.add(numbered(number, 9 if number > 300 else 1), rng)
    drawn = np.concatenate([buffer.draw(4, rng, same_age=True)["length"] for _ in range(800)])
    assert np.mean(drawn == 9) == pytest.approx(900 / 1200, abs=0.05)


def test_long_episodes_are_drawn_from_a_window_of_as_few_as_are_kept():
    """In a thousand steps a policy changes more than in ten."""
    rng = np.random.default_rng(0)
    replay = Replay(batch_size=16, batch_states=40)
    for length, window in ((1, 64), (10, 16)):
        buffer = make_buffer(400, 10)
        for number in range(1, 401):
            buffer.add(numbered(number, length), rng)
        for _ in range(200):
            drawn = buffer.draw(
                16, rng, same_age=True, fewer=lambda _, n=length: replay.batch_of(n)
            )
            assert np.ptp(drawn["reward"][0]) < window


def test_batches_of_long_episodes_hold_fewer_of_them():
    rng = np.random.default_rng(0)
    replay = Replay(batch_size=16, batch_states=640)
    for length, episodes in ((20, 16), (64, 10), (100, 6), (200, 4)):
        buffer = make_buffer(4, 200)
        for number in range(4):
            buffer.add(numbered(number, length), rng)
        drawn = buffer.draw(replay.batch_size, rng, fewer=replay.batch_of)
        steps, number = drawn["reward"].shape
        assert len(drawn["length"]) == number == replay.batch_of(steps)
        assert replay.batch_of(length) == episodes


@pytest.mark.parametrize(("slots", "number"), [(8, 3), (8, 30), (4, 30), (12, 30)])
def test_a_buffer_can_be_resized(slots, number):
    rng = np.random.default_rng(0)
    buffer = make_buffer(8, 3, ("action",))
    for n in range(1, number + 1):
        buffer.add(numbered(n), rng)
    before = {int(x) for x in np.concatenate([q for q in map(np.array, held(buffer)) if len(q)])
              if x is not None}  # fmt: skip
    buffer.resize(6, slots, rng)
    assert buffer.max_steps == 6
    assert buffer.slots == slots
    queue, archive = held(buffer)
    kept = ({*queue} | {*archive}) - {None}
    assert kept <= before
    assert len(buffer) == len(kept) == min(len(before), slots)
    newest = range(max(1, number - min(slots, 8) // 2 + 1), number + 1)
    assert {*newest} <= kept
    for n in range(number + 1, number + 20):  # and goes on as if it had been so all along
        buffer.add(numbered(n, 6), rng)
        queue, archive = held(buffer)
        assert n in queue
        assert len({*archive}) == len(archive)
        assert not {*archive} & {*queue}


def test_batches_are_those_of_a_buffer_that_copies_whole_slots(monkeypatch):
    def copy_all(buffer, source, target):
        for array in (*buffer.arrays.values(), buffer.length, buffer.number):
            array[target] = array[source]

    fields = ["action"]
    plain = make_buffer(6, 40, fields)
    whole = make_buffer(6, 40, fields)
    monkeypatch.setattr(whole, "_copy", lambda *slots: copy_all(whole, *slots))
    lengths = np.random.default_rng(1).integers(1, 41, 60)
    for buffer in (plain, whole):
        rng = np.random.default_rng(2)
        for number, length in enumerate(lengths):
            buffer.add(numbered(number, int(length)), rng)
    assert held(plain) == held(whole)
    for seed in range(10):
        got, want = (buffer.draw(4, np.random.default_rng(seed)) for buffer in (plain, whole))
        for name in ("length", "reward", "discount", "action"):  # also behind the end
            np.testing.assert_array_equal(got[name], want[name])
        for row, length in enumerate(want["length"]):
            for x in (got, want):  # what lies behind the terminal state means nothing
                x["observation"][length + 1 :, row] = 0
        np.testing.assert_array_equal(got["observation"], want["observation"])


@pytest.mark.skipif(np.isnan(resident_mb()), reason="the system does not say")
def test_a_slot_takes_only_the_memory_of_its_states():
    """Most episodes are far shorter than the longest possible one, and all get into the archive."""
    slots, longest, size = 8, 20_000, 2_000
    buffer = EpisodeBuffer(EpisodeSpec((size,), np.dtype(np.uint8), longest), slots)
    states = np.ones((11, size), np.uint8)
    episode = Episode(states, np.zeros(10, np.float32), np.ones(10, np.float32))
    before, rng = resident_mb(), np.random.default_rng(0)
    for _ in range(4 * slots):
        buffer.add(episode, rng)
    assert len(buffer) == slots
    assert resident_mb() - before < slots * longest * size / 1e6 / 4  # a huge page is 2 MB
