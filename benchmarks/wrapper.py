"""What synthetic returns cost Stable-Baselines3's PPO on Catch, side by side in one run.

    OMP_NUM_THREADS=1 python benchmarks/wrapper.py

Agents without the wrapper, with it, and with it learning beside the agent (``overlap``) train in
turns in one process, so that whatever else the machine does meets all. The overhead is the time
that the wrapper adds, as a share of the time without it: on the clock, and of processors, which
says what it would be on a single core. Writes benchmarks/results/wrapper.json. The settings of PPO
are those of examples/sb3_ppo.py.
"""

import argparse
import dataclasses
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import synthetic_returns as sr
from synthetic_returns.bench.record import Record, print_records, write_json

ENVS, EPISODE = 16, 139
SETTINGS = {
    "n_steps": 128,
    "batch_size": 256,
    "gamma": 0.9,
    "normalize_advantage": False,
    "ent_coef": 0.01,
}
ROUND = ENVS * SETTINGS["n_steps"] * 2  # steps between two turns
ARMS: dict[str, dict[str, Any] | None] = {
    "without": None,
    "with": {},
    "overlap": {"overlap": True},
}
CLOCKS = {"": time.perf_counter, "/processor": time.process_time}


def make_agent(wrapper: dict[str, Any] | None, updates: float | None) -> PPO:
    envs = make_vec_env("synthetic_returns/CatchDelayed-v0", ENVS, seed=0)
    if wrapper is not None:
        method = sr.Advance()
        if updates is not None:
            replay = dataclasses.replace(method.replay, updates_per_episode=updates)
            method = dataclasses.replace(method, replay=replay)
        envs = sr.SyntheticReturnsVecEnv(envs, max_episode_steps=EPISODE, method=method, **wrapper)
    return PPO("MlpPolicy", envs, seed=0, device="cpu", **SETTINGS)  # pyright: ignore


def measure(rounds: int, warmup: int, updates: float | None) -> list[Record]:
    agents = {name: make_agent(wrapper, updates) for name, wrapper in ARMS.items()}
    seconds: dict[str, dict[str, list[float]]] = {
        clock: {name: [] for name in agents} for clock in CLOCKS
    }
    for number in range(warmup + rounds):
        for name, agent in agents.items():
            start = {clock: now() for clock, now in CLOCKS.items()}
            agent.learn(ROUND, reset_num_timesteps=number == 0)
            if number >= warmup:  # the first rounds compile
                for clock, now in CLOCKS.items():
                    seconds[clock][name].append(now() - start[clock])
    records = [
        Record(f"sb3_ppo_steps_per_s/{name}", rounds * ROUND / sum(seconds[""][name]), "steps/s")
        for name in agents
    ]
    for clock, of in seconds.items():
        for name in ("with", "overlap"):
            added = [100 * (b / a - 1) for a, b in zip(of["without"], of[name], strict=True)]
            total = 100 * (sum(of[name]) / sum(of["without"]) - 1)
            records += [
                Record(f"wrapper_overhead{clock}/{name}", total, "%"),
                Record(
                    f"wrapper_overhead{clock}/{name}/median_of_rounds",
                    statistics.median(added),
                    "%",
                ),
            ]
    return records


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="of 4,096 steps for each agent")
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--updates", type=float, help="for each episode; the method's unless given")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/wrapper.json")
    args = parser.parse_args()
    torch.set_num_threads(1)
    records = measure(args.rounds, args.warmup, args.updates)
    print_records(records)
    write_json(args.out, records)
