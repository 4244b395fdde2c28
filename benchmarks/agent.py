"""Our side of benchmarks/peers/run.py: the records of ``bench agent``, one line each."""

import dataclasses
import json

from synthetic_returns.bench.agent import run

if __name__ == "__main__":
    for record in run():
        print(json.dumps(dataclasses.asdict(record)))
