"""Episodes that wait to be learned from: in order, bounded, and restored as they were."""

import jax
import numpy as np

from synthetic_returns.credit.data.queue import EpisodeQueue
from synthetic_returns.credit.spec import EpisodeSpec
from tests.credit.test_recorder import LONGEST, assert_same, make_stream


def make_queue(slots, steps=LONGEST):
    spec = EpisodeSpec((2,), np.dtype(np.float32), steps, num_actions=2, has_policy=True)
    return EpisodeQueue(spec, slots)


def make_episodes():
    return [episode for _, _, episode in make_stream([[3, 6, 1, 4, 2]], seed=0)[1]]


def test_the_oldest_are_taken_first_and_dropped_first():
    queue, episodes = make_queue(4), make_episodes()
    queue.add(episodes)
    assert [len(episode) for episode in queue] == [6, 1, 4, 2]
    assert [len(episode) for episode in queue.take(3)] == [6, 1, 4]
    assert len(queue) == 1


def test_a_snapshot_has_the_shapes_of_its_example_and_brings_all_back():
    for steps in (LONGEST, 2):  # as expected, and longer than that
        queue, other = make_queue(8, steps), make_queue(8, steps)
        queue.add(make_episodes())
        snapshot = queue.snapshot()
        shapes = jax.tree.map(lambda x: (x.shape, x.dtype), [snapshot.example(), *snapshot.items])
        assert all(item == shapes[0] for item in shapes[1:])
        other.add(make_episodes()[:1])
        other.restore(snapshot.items)
        for got, want in zip(other, make_episodes(), strict=True):
            assert_same(got, want)
