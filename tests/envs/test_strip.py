import itertools

import matplotlib.image
import pytest

from synthetic_returns.envs.catalog import parameters_listing, tasks_listing
from synthetic_returns.envs.registry import TASKS
from synthetic_returns.envs.strip import _choose, draw_strip


def test_a_strip_is_a_picture(tmp_path):
    path = tmp_path / "chain.png"
    draw_strip("chain", path, free_moves=7)
    picture = matplotlib.image.imread(path)
    assert picture.shape[1] == 1280
    assert picture.std() > 0


@pytest.mark.parametrize("total", [5, 32, 33, 200])
def test_a_strip_shows_both_ends_and_rare_events(total):
    happened = ["apple" if i % 3 == 0 else "" for i in range(total)]
    happened[total // 2] = "door"
    chosen = _choose(happened, 32)
    assert len(chosen) <= 32
    assert chosen[0] == 0
    assert chosen[-1] == total - 1
    assert total // 2 in chosen
    assert all(a < b for a, b in itertools.pairwise(chosen))


def test_the_table_lists_every_task():
    text = tasks_listing().plain() + parameters_listing(TASKS["key-to-door-two-keys"]).plain()
    for task in TASKS.values():
        assert task.name in text

    assert "red_key_reward" in text
    assert "the red key was taken" in text
