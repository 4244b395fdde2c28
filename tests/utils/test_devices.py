"""Several devices give the numbers of one; in a process of its own, which makes cores devices."""

import json
import subprocess
import sys

import pytest

from synthetic_returns.utils.devices import device_mesh

CASES = [("paper", "fused"), ("paper", "local")]
PROGRAM = """
import json, os, sys
os.sched_getaffinity = lambda _: {0, 1, 2, 3}  # devices do not need a core each to be right
from synthetic_returns.commands.train import configuration
from synthetic_returns.engines.engine import make_engine

for credit, kind in json.loads(sys.argv[1]):
    for devices in ("4", "1"):  # cores become devices before the first computation
        config = configuration([
            *("chain", "--preset", "paper", "--credit", credit, "--engine", kind),
            *("--engine.devices", devices, "--engine.num-envs", "8", "--agent.lstm-size", "16"),
            *(("--engine.actors", "0") if kind == "local" else ()),
        ])
        engine = make_engine(config, [0])
        for _ in range(4):
            engine.step()
        print(json.dumps(engine.report()[0]))
"""


def test_four_devices_give_the_numbers_of_one():
    command = [sys.executable, "-c", PROGRAM, json.dumps(CASES)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr
    reports = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    for case, four, one in zip(CASES, reports[::2], reports[1::2], strict=True):
        assert one.keys() == four.keys()
        for name in ("episode_return", "episode_steps", "trigger", "loss/policy", "loss/value",
                     "loss/credit", "policy/entropy", "policy/ratio_max", "grad_norm"):  # fmt: skip
            assert four[name] == pytest.approx(one[name], rel=2e-3, abs=1e-5), (*case, name)


def test_more_devices_than_there_are_is_refused():
    with pytest.raises(ValueError, match=r"devices is 99 and JAX has \d+"):
        device_mesh(99, 99)
