"""Environment steps per second of two agents on Catch, learning included."""

import contextlib
import time
from collections.abc import Iterable

from synthetic_returns.bench.record import Record
from synthetic_returns.config import Config
from synthetic_returns.credit.none import NoCredit
from synthetic_returns.engines.engine import make_engine
from synthetic_returns.presets import preset
from synthetic_returns.utils.suggestions import unknown

__all__ = ["run", "steps_per_second"]

SECONDS = 20.0
WARM_UP_UPDATES = 20
NETWORKS = ("paper", "mlp")


def run(networks: Iterable[str] = NETWORKS, *, seconds: float = SECONDS) -> list[Record]:
    """Measures 7x7 Catch with 32 environments, without and with credit.

    Args:
      networks: ``paper`` is the paper's network on unrolls of 20, alone (``ours``) and with
        synthetic returns at a memory of 140 (``ours_sr``). ``mlp`` is two layers of 128 on unrolls
        of 64, each learned from once: alone (``ours_mlp``), with the default credit method
        (``ours_mlp_credit``), and with an LSTM of 128 between the layers (``ours_lstm``).
      seconds: of each measurement.
    """
    records = []
    for network in networks:
        if network not in NETWORKS:
            raise ValueError(unknown("network", network, NETWORKS))
        # As many updates of the fast network in one call as the peers make.
        arms, between = (_paper(), 10) if network == "paper" else (_mlp(), 50)
        for name, config in arms.items():
            rate = steps_per_second(config, seconds, between=between)
            records.append(Record(f"agent_steps_per_s/{name}", rate, "env steps/s"))
    return records


def _paper() -> dict[str, Config]:
    config = preset("catch", "paper").changed({"credit.capacity": 140})
    return {"ours": config.changed(credit=NoCredit()), "ours_sr": config}


def _mlp() -> dict[str, Config]:
    config = preset("catch").changed(
        {
            "engine.unroll_length": 64,
            "agent.epochs": 1,
            "agent.torso.sizes": (128,),
            "agent.policy_size": 128,
            "agent.clock": False,
            "credit.replay.warmup": 1,  # what is measured is what most of a run is like
        }
    )
    alone = config.changed(credit=NoCredit())
    return {
        "ours_mlp": alone,
        "ours_mlp_credit": config,
        "ours_lstm": alone.changed({"agent.lstm_size": 128}),
    }


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
