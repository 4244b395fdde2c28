import json

from synthetic_returns.bench.envs import run
from synthetic_returns.bench.record import Record, write_json


def test_both_sides_of_a_task_are_measured(tmp_path):
    records = run(["chain"], num_envs=2, steps=3, repeats=1)
    names = [record.name for record in records]
    assert names == ["env_steps_per_s/chain", "gym_steps_per_s/chain"]
    assert all(record.value > 0 and record.unit == "steps/s" for record in records)
    write_json(tmp_path / "bench.json", records)
    rows = json.loads((tmp_path / "bench.json").read_text())
    assert [Record(**row) for row in rows] == records
