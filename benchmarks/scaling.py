"""How the cluster engine scales: measured with a few actors, and modelled up to many.

    python benchmarks/scaling.py --seconds 30

writes benchmarks/results/scaling.csv (measured beside modelled, on this machine's cores) and
benchmarks/results/scaling-model.csv (a core for every actor, 10 Gbit/s, up to 1,024 actors).

    python benchmarks/scaling.py --bytes

writes benchmarks/results/cluster-bytes.csv: what is sent for each environment step, and what it
would be with the episodic memory. That is arithmetic; nothing is run.
"""

import argparse
import dataclasses
import time
from pathlib import Path

import jax

from synthetic_returns.bench.cluster_model import ClusterCosts, forecast
from synthetic_returns.config import Config
from synthetic_returns.engines.cluster.actor_process import ActorProcess, to_weights
from synthetic_returns.engines.cluster.engine import ClusterEngine
from synthetic_returns.engines.settings import ClusterSettings
from synthetic_returns.engines.shapes import expected_trajectory
from synthetic_returns.engines.unroll_learner import Unroll, UnrollLearner
from synthetic_returns.presets import preset
from synthetic_returns.utils.cores import pin, usable_cores
from synthetic_returns.utils.tables import write_csv

RESULTS = Path("benchmarks/results")
MEASURED = (1, 2, 4, 8)
MODELLED = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
BYTES = (
    ("chain", "paper"),
    ("catch-delayed", "paper"),
    ("catch-delayed", "episodic"),
    ("key-to-door", "episodic"),
    ("skiing", "paper"),
    ("skiing", "counter"),
)
TEN_GIGABIT = 1.25e9  # bytes per second


def engine_of(config: Config) -> ClusterSettings:
    assert isinstance(config.engine, ClusterSettings)
    return config.engine


def measure_costs(config: Config, repeats: int = 300, warm_up: int = 100) -> ClusterCosts:
    """Times an actor and the learner apart, in this process, on one core.

    Episodes have to end while it is timed: the learner learns more from those. What it costs comes
    in bursts, so means are taken and not medians.
    """
    pin(0, usable_cores()[0])
    settings = engine_of(config)
    num_envs, streams = settings.envs_per_actor, settings.unrolls_per_update
    learner = UnrollLearner(config, 0, streams=streams, num_envs=num_envs)
    processes = [ActorProcess(config, num_envs, 0, stream) for stream in range(streams)]
    weights = to_weights(learner.agent.network, 0)
    play_s = update_s = 0.0
    trajectory = None
    for number in range(warm_up + repeats):
        if number == warm_up:  # compiled, also for the few sizes that episodes come in
            play_s = update_s = 0.0
        weights = to_weights(learner.agent.network, learner.updates)
        began = time.perf_counter()
        unrolls = []
        for stream, process in enumerate(processes):
            trajectory = process.unroll(weights, 0)
            unrolls.append(Unroll(stream, learner.updates, trajectory))
        played = time.perf_counter()
        learner.update(*unrolls)
        jax.block_until_ready(learner.agent)
        play_s += (played - began) / len(processes)
        update_s += time.perf_counter() - played
    return ClusterCosts(
        play_s=play_s / repeats,
        receive_s=0.0,  # not known yet
        update_s=update_s / repeats,
        unroll_bytes=sum(leaf.nbytes for leaf in jax.tree.leaves(trajectory)),
        weights_bytes=sum(array.nbytes for array in weights[1]),
        unroll_steps=num_envs * settings.unroll_length,
    )


def measure(config: Config, seconds: float) -> dict[str, float]:
    """Trains for a while; the first third does not count."""
    engine = ClusterEngine(config, [0])
    try:
        for _ in range(20):
            engine.step()
        end = time.monotonic() + seconds / 3
        while time.monotonic() < end:
            engine.step()
        engine.report()
        began, updates = time.monotonic(), 0
        while time.monotonic() < began + seconds:
            engine.step()
            updates += 1
        elapsed = time.monotonic() - began
        report = engine.report()[0]
    finally:
        engine.close()
    return {
        "steps_per_s": updates * engine.steps_per_update / elapsed,
        "learner_busy": report["learner/busy"],
        "lag": report["policy/lag"],
        "bytes_per_step": report["actors/bytes_per_step"],
    }


def write_bytes(path: Path) -> None:
    rows = []
    for task, name in BYTES:
        config = preset(task, name)
        num_envs, length = config.engine.num_envs, config.engine.unroll_length
        unroll = expected_trajectory(config, num_envs)
        steps = num_envs * length
        sent = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(unroll))
        capacity = getattr(config.credit, "capacity", None) or config.task.max_episode_steps
        memory = 4 * capacity * config.agent.torso.sizes[-1] * num_envs
        rows.append(
            {
                "task": task,
                "preset": name,
                "unroll_length": length,
                "bytes_per_step": sent / steps,
                "with_memory": (sent + memory) / steps,
            }
        )
    write_csv(path, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="catch-delayed")
    parser.add_argument("--preset", default="episodic")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--actors", type=int, nargs="*", default=MEASURED)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--bytes", action="store_true", help="only what is sent")
    options = parser.parse_args()
    if options.bytes:
        write_bytes(options.out / "cluster-bytes.csv")
        return

    ours = usable_cores()
    cores = len(ours)
    config = preset(options.task, options.preset)
    num_envs, length = config.engine.num_envs, config.engine.unroll_length
    engine = ClusterSettings(num_envs=num_envs, unroll_length=length, actor_envs=num_envs)
    config = config.changed(engine=engine)
    costs = measure_costs(config)
    pin(0, *ours)
    rows = []
    for actors in options.actors:
        found = measure(config.changed({"engine.actors": actors}), options.seconds)
        if not rows:  # what the first one takes longer are the messages; the others are checks
            whole_s = costs.unroll_steps * engine.unrolls_per_update / found["steps_per_s"]
            receive_s = max(0.0, whole_s - costs.update_s) / engine.unrolls_per_update
            costs = dataclasses.replace(costs, receive_s=receive_s)
            print(costs)
        model = forecast(costs, actors, cores=cores)
        row = {"actors": actors, "cores": cores} | found
        row |= {
            f"model_{name}": getattr(model, name) for name in ("steps_per_s", "learner_busy", "lag")
        }
        rows.append(row)
        print(row)
    write_csv(options.out / "scaling.csv", rows)
    small = dataclasses.replace(engine, actors=8, actor_envs=max(1, num_envs // 8))
    rows = []
    for actors in MODELLED:
        for name, setting in (("whole batches", engine), ("eighths of a batch", small)):
            if actors < setting.unrolls_per_update:
                continue
            share = setting.envs_per_actor / num_envs
            scaled = dataclasses.replace(
                costs,
                play_s=costs.play_s * share,
                unroll_bytes=costs.unroll_bytes * share,
                unroll_steps=int(costs.unroll_steps * share),
            )
            model = forecast(
                scaled, actors, unrolls_per_update=setting.unrolls_per_update,
                bytes_per_s=TEN_GIGABIT, actors_per_node=32,
            )  # fmt: skip
            rows.append({"actors": actors, "each": name} | dataclasses.asdict(model))
    write_csv(options.out / "scaling-model.csv", rows)


if __name__ == "__main__":
    main()
