"""Several devices give the numbers of one; in a process of its own, which makes cores devices."""

import json
import subprocess
import sys

import pytest

from synthetic_returns.utils.devices import device_mesh

PROGRAM = """
import dataclasses, json, os, sys
os.sched_getaffinity = lambda _: {0, 1, 2, 3}  # devices do not need a core each to be right
from synthetic_returns.engines.engine import make_engine
from synthetic_returns.presets import preset

devices, sr, engine = int(sys.argv[1]), sys.argv[2] == "sr", sys.argv[3]
config = preset("chain", "paper")
config = dataclasses.replace(
    config, devices=devices, sr=sr, num_envs=8, lstm_size=16, engine=engine, actors=0
)
engine = make_engine(config, [0])
for _ in range(4):
    engine.step()
print(json.dumps(engine.report()[0]))
"""


def report(devices, arm, engine):
    command = [sys.executable, "-c", PROGRAM, str(devices), arm, engine]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


@pytest.mark.parametrize(("arm", "engine"), [("sr", "fused"), ("no-sr", "fused"), ("sr", "local")])
def test_four_devices_give_the_numbers_of_one(arm, engine):
    one, four = report(1, arm, engine), report(4, arm, engine)
    assert one.keys() == four.keys()
    for name in ("episode_return", "episode_steps", "trigger", "loss/policy", "loss/value",
                 "loss/sa", "policy/entropy", "grad_norm"):  # fmt: skip
        assert four[name] == pytest.approx(one[name], rel=2e-3, abs=1e-5), name


def test_more_devices_than_there_are_is_refused():
    with pytest.raises(ValueError, match=r"devices is 99 and JAX has \d+"):
        device_mesh(99, 99)
