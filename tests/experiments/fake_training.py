"""Training processes that only pretend: they write the files of a run, a part at every look."""

import dataclasses
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from synthetic_returns.commands.train import configuration
from synthetic_returns.experiments.sweeps.ranges import parse_space
from synthetic_returns.experiments.sweeps.run import Sweep
from synthetic_returns.experiments.sweeps.study import REPORTS, Settings
from synthetic_returns.training import jobs
from synthetic_returns.training.metrics import read_metrics
from synthetic_returns.training.runs import Run

STEPS = 4_000
ROW = STEPS // REPORTS
FLAGS = ("--steps", str(STEPS))


@dataclasses.dataclass
class Fake:
    """What the processes do, and what they were told.

    Attributes:
      value: of a run at a share of its steps, from its learning rate and that share.
      rows: written at every look.
      commands: of all processes, in the order of their start.
      stopped: the runs whose process was ended early.
      look: called at every look with the number of looks so far.
    """

    value: Callable[[float, float], float] = lambda rate, share: share * (5 + np.log10(rate))
    rows: int = 10
    commands: list[list[str]] = dataclasses.field(default_factory=list)
    stopped: list[Path] = dataclasses.field(default_factory=list)
    look: Callable[[int], None] = lambda looks: None
    looks: int = 0
    code: int = 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fake = self

        class Process(subprocess.Popen):
            def __init__(self, command, *, env, **_):
                fake.commands.append(list(command))
                self.returncode = None  # type: ignore[assignment]
                self.pid = 0
                self._out = Path(command[command.index("--resume") + 1])
                self._arguments = command[command.index("train") + 1 : command.index("--resume")]

            def poll(self):
                fake.looks += 1
                fake.look(fake.looks)
                self.returncode = fake.code or fake.advance(self._out, self._arguments)
                return self.returncode

            def terminate(self):
                fake.stopped.append(self._out)

            def wait(self, timeout=None):
                return 0

            def __del__(self):
                pass

        monkeypatch.setattr(jobs.subprocess, "Popen", Process)
        monkeypatch.setattr(jobs.os, "sched_setaffinity", lambda *_: None)
        monkeypatch.setattr(jobs, "POLL_SECONDS", 0)

    def advance(self, out: Path, arguments: list[str]) -> int | None:
        """Writes the next rows of a run; gives the code 0 once it is complete."""
        config = configuration(arguments)
        new = not (out / "config.json").exists()
        opened = Run.create(out, config.to_dict(), []) if new else Run.open(out, write=True)
        with opened as run:
            done = 0 if new else int(max(read_metrics(out / "metrics.csv")["env_steps"], default=0))
            step = done
            with run.metrics(done or None) as metrics:
                for step in range(done + ROW, min(done + self.rows * ROW, STEPS) + 1, ROW):
                    value = self.value(config.optimizer.learning_rate, step / STEPS)
                    metrics.write(step, {"episode_return": value, "steps_per_s": 1.0})
            if step < STEPS:
                return None
            final = self.value(config.optimizer.learning_rate, 1.0)
            result = dict.fromkeys(("return_mean", "return_low", "return_high"), final)
            run.write_summary({"env_steps": STEPS, "wall_s": 1.0, "eval": result})
        return 0


def small_sweep(folder: Path, *, prune: bool = False, storage: str | None = None) -> Sweep:
    """A sweep over the learning rate of the Chain."""
    config = configuration(["chain", *FLAGS])
    space = parse_space(["optimizer.learning_rate=log:1e-4:1"], config)
    text = {name: str(drawn) for name, drawn in space.items()}
    settings = Settings("chain", "fast", FLAGS, text, "return", STEPS, 0, prune)
    return Sweep(settings, space, config, folder, storage)
