"""A soak of the cluster engine: a random actor is killed every so often while it trains.

    python benchmarks/soak.py --minutes 20 --every 30 --out benchmarks/results/soak.csv

The CSV is the run's metrics; the last line printed says what is left at the end.
"""

import argparse
import contextlib
import random
import shutil
import signal
import threading
import time
from pathlib import Path

from synthetic_returns.commands.train import configuration
from synthetic_returns.training.trainer import TrainingStopped, train


def kill_actors(every: float, actors: int, stop: threading.Event, killed: list[int]) -> None:
    """Kills the process of a random actor, again and again."""
    import ray

    rng = random.Random(0)
    while not stop.wait(every):
        if not ray.is_initialized():  # asking would start a cluster
            continue
        prefix = f"actor-{(stream := rng.randrange(actors))}-"
        for name in ray.util.list_named_actors():
            if name.startswith(prefix):
                with contextlib.suppress(ValueError):  # not now
                    ray.kill(ray.get_actor(name), no_restart=False)
                    killed.append(stream)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="catch-delayed")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--every", type=float, default=30, help="seconds between two kills")
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--run", type=Path, default=Path("runs/soak"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/soak.csv"))
    options = parser.parse_args()

    config = configuration(
        [
            *(options.task, "--engine", "cluster", "--engine.actors", str(options.actors)),
            *("--reporting.traces", "0"),
        ]
    )
    stop, killed = threading.Event(), []
    deadline = time.monotonic() + 60 * options.minutes
    killer = threading.Thread(
        target=kill_actors, args=(options.every, options.actors, stop, killed), daemon=True
    )
    killer.start()

    def until_the_end(step: int, row: dict[str, float]) -> None:
        score, restarted = row.get("episode_return", float("nan")), row["actors/restarted"]
        print(f"{step:>9,}  return {score:.2f}  killed {len(killed)}  restarted {restarted:.0f}",
              flush=True)  # fmt: skip
        if time.monotonic() > deadline:
            signal.raise_signal(signal.SIGTERM)

    # The preset's steps first, then as many again, until the time is over.
    with contextlib.suppress(TrainingStopped):
        while time.monotonic() < deadline:
            train(config, out=options.run, resume=True, progress=until_the_end)
            config = config.changed(steps=config.steps + 200_000)
    stop.set()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(options.run / "metrics.csv", options.out)
    print(f"{len(killed)} actors killed in {options.minutes:g} minutes; metrics in {options.out}")


if __name__ == "__main__":
    main()
