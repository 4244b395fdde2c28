"""Our side of benchmarks/peers/run.py: the records of ``bench agent``, one line each."""

import argparse
import dataclasses
import json

from synthetic_returns.bench.agent import NETWORKS, SECONDS, run

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="*", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--seconds", type=float, default=SECONDS)
    args = parser.parse_args()
    for record in run(args.networks, seconds=args.seconds):
        print(json.dumps(dataclasses.asdict(record)))
