import pytest

from synthetic_returns.bench import atari

pytest.importorskip("ale_py")


@pytest.mark.slow
def test_every_record_is_measured():
    records = atari.run(seconds=0.1, episode_updates=1)
    assert [record.name for record in records] == [
        f"atari_steps_per_s/{name}"
        for name in ("env", "act", "train_counter", "train_counter_none", "train_paper")
    ]
    assert all(record.value > 0 for record in records)
