"""Environment steps per second of the paper's agent on Catch, learning included."""

import contextlib
import time

from synthetic_returns.bench.record import Record
from synthetic_returns.config import Config
from synthetic_returns.credit.none import NoCredit
from synthetic_returns.engines.engine import make_engine
from synthetic_returns.presets import preset

__all__ = ["run", "steps_per_second"]

SECONDS = 20.0
WARM_UP_UPDATES = 20


def run() -> list[Record]:
    """Without and with synthetic returns: 7x7 Catch, 32 environments, unroll 20, memory 140."""
    config = preset("catch", "paper").changed({"credit.capacity": 140})
    return [
        Record(f"agent_steps_per_s/{name}", steps_per_second(arm, SECONDS), "env steps/s")
        for name, arm in (("ours", config.changed(credit=NoCredit())), ("ours_sr", config))
    ]


def steps_per_second(
    config: Config, seconds: float, *, warm_up: int = WARM_UP_UPDATES, between: int = 10
) -> float:
    """Acting and learning, after compilation, until the time is over.

    Args:
      config: what to train, with any engine.
      seconds: how long to measure.
      warm_up: updates before that.
      between: updates between two looks at the clock.
    """
    engine = make_engine(config, [config.seed])
    with contextlib.closing(engine):
        for _ in range(warm_up):
            engine.step()
        engine.report()
        start, updates = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            end = updates + between
            while updates < end:
                updates += engine.step(end - updates)
            engine.report()  # waits for the device
        return updates * engine.steps_per_update / (time.perf_counter() - start)
