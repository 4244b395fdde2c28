"""Environment steps per second of an engine on Skiing: the paper's frames and network, without SR.

    python benchmarks/engines.py --engine local
    python benchmarks/engines.py --engine cluster

Prints a line of JSON; benchmarks/peers/run.py runs both and RLlib in turns.
"""

import argparse
import json

from synthetic_returns.bench.agent import steps_per_second
from synthetic_returns.credit.none import NoCredit
from synthetic_returns.engines.settings import find_engine
from synthetic_returns.presets import preset

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=("local", "cluster"), required=True)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--envs", type=int, default=16, help="of an update")
    parser.add_argument("--unroll", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30)
    args = parser.parse_args()
    settings = find_engine(args.engine)(num_envs=args.envs, unroll_length=args.unroll)
    config = preset("skiing", "paper").changed(
        {"engine": settings, "engine.actors": args.actors, "credit": NoCredit()}
    )
    rate = steps_per_second(config, args.seconds, warm_up=5, between=2)
    record = {"name": f"engine_steps_per_s/{args.engine}", "value": rate, "unit": "env steps/s"}
    print(json.dumps(record), flush=True)
