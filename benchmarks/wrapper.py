"""What synthetic returns cost Stable-Baselines3's PPO on Catch, side by side in one run.

    OMP_NUM_THREADS=1 python benchmarks/wrapper.py

Two agents, with the wrapper and without, train in turns in one process, so that whatever else the
machine does meets both. The overhead is the time that the wrapper adds, as a share of the time
without it. Writes benchmarks/results/wrapper.json. The settings of PPO are those of
examples/sb3_ppo.py.
"""

import argparse
import statistics
import time
from pathlib import Path

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


def make_agent(with_sr: bool) -> PPO:
    envs = make_vec_env("synthetic_returns/CatchDelayed-v0", ENVS, seed=0)
    if with_sr:
        envs = sr.SyntheticReturnsVecEnv(envs, max_episode_steps=EPISODE)
    return PPO("MlpPolicy", envs, seed=0, device="cpu", **SETTINGS)  # pyright: ignore


def measure(rounds: int, warmup: int) -> list[Record]:
    agents = {"without": make_agent(False), "with": make_agent(True)}
    seconds = {name: [] for name in agents}
    for number in range(warmup + rounds):
        for name, agent in agents.items():
            start = time.perf_counter()
            agent.learn(ROUND, reset_num_timesteps=number == 0)
            if number >= warmup:  # the first rounds compile
                seconds[name].append(time.perf_counter() - start)
    without, with_sr = (sum(seconds[name]) for name in ("without", "with"))
    pairs = zip(seconds["without"], seconds["with"], strict=True)
    return [
        Record("sb3_ppo_steps_per_s/without", rounds * ROUND / without, "steps/s"),
        Record("sb3_ppo_steps_per_s/with", rounds * ROUND / with_sr, "steps/s"),
        Record("wrapper_overhead", 100 * (with_sr / without - 1), "%"),
        Record(
            "wrapper_overhead/median_of_rounds",
            statistics.median(100 * (b / a - 1) for a, b in pairs),
            "%",
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="of 4,096 steps for each agent")
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/wrapper.json")
    args = parser.parse_args()
    torch.set_num_threads(1)
    records = measure(args.rounds, args.warmup)
    print_records(records)
    write_json(args.out, records)
