"""Off-policy agents of Stable-Baselines3 on delayed rewards: what the replay buffer pays.

    export OMP_NUM_THREADS=1
    python examples/sb3_replay.py --seeds 0 1 2                     # the whole study
    python examples/sb3_replay.py catch --arms relabelled stale --seeds 0 1 2

Tasks: ``chain``, ``catch`` (5 balls, paid at the end) and ``key-to-door`` (a short one) for DQN;
HalfCheetah-v5, Hopper-v5 and any other Gymnasium environment with continuous actions for SAC, all
rewards paid at the end (``pip install 'synthetic-returns[mujoco]'``). Arms: ``relabelled`` pays
what the credit method says when a batch is sampled, ``stale`` what it said when a step was made,
``none`` the environment's rewards, ``dense`` rewards at once, where the task has them. All arms of
a task have the settings below. A run writes its learning curve of true returns to
``results/replay/<task>/<arm>-seed<n>.csv``; a finished one is left alone, an unfinished one is made
again. ``results/replay/summary.csv`` has a row for each.
"""

import argparse
import csv
from pathlib import Path
from typing import Any

import torch
from curves import write_rows
from paid_at_the_end import PaidAtTheEnd
from sb3_untouched import Curve
from stable_baselines3 import DQN, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv

import synthetic_returns as sr

STUDY = ("chain", "catch", "key-to-door", "HalfCheetah-v5", "Hopper-v5")
ARMS = ("relabelled", "stale", "none", "dense")
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "chain": ("synthetic_returns/Chain-v0", {}),
    "catch": ("synthetic_returns/CatchDelayed-v0", {"runs": 5}),
    "key-to-door": ("synthetic_returns/KeyToDoor-v0", {"distractor_steps": 15, "apples": 2}),
}
DENSE = {"catch": ("synthetic_returns/Catch-v0", {"runs": 5})}
STEPS = {"chain": 60_000, "catch": 30_000, "key-to-door": 40_000}
STEPS_OF_OTHERS = 300_000
DQN_ENVS = 4
DQN_SETTINGS: dict[str, Any] = {
    "learning_rate": 5e-4, "buffer_size": 100_000, "learning_starts": 2_000, "batch_size": 64,
    "train_freq": 4, "gradient_steps": 4, "target_update_interval": 1_000, "gamma": 0.95,
    "exploration_fraction": 0.5, "exploration_final_eps": 0.05,
}  # fmt: skip
# One update for each step of all environments, as is the default: one for 32 transitions, where
# one for each is usual. So the networks are smaller and learn faster than by default.
SAC_ENVS = 32
SAC_SETTINGS: dict[str, Any] = {"learning_rate": 1e-3, "policy_kwargs": {"net_arch": [64, 64]}}


def make_envs(task: str, seed: int, arm: str) -> VecEnv:
    if task not in OURS:
        delayed = None if arm == "dense" else PaidAtTheEnd
        envs = make_vec_env(task, n_envs=SAC_ENVS, seed=seed, wrapper_class=delayed)
    else:
        name, parameters = (DENSE if arm == "dense" else OURS)[task]
        envs = make_vec_env(name, n_envs=DQN_ENVS, seed=seed, env_kwargs=parameters)
    if arm == "stale":
        envs = sr.SyntheticReturnsVecEnv(envs, seed=seed)
    return envs


def make_agent(task: str, seed: int, arm: str) -> DQN | SAC:
    envs = make_envs(task, seed, arm)
    if task in OURS:
        model = DQN("MlpPolicy", envs, seed=seed, device="cpu", **DQN_SETTINGS)
    else:
        model = SAC("MlpPolicy", envs, seed=seed, device="cpu", **SAC_SETTINGS)
    if arm == "relabelled":
        model = sr.with_credit(model, seed=seed)  # the one line
    return model


def train(task: str, arm: str, seed: int, args: argparse.Namespace) -> None:
    path = args.out / task.rpartition("/")[2] / f"{arm}-seed{seed}.csv"
    if path.exists():
        print(f"{path} is finished")
    elif arm == "dense" and task in OURS and task not in DENSE:
        print(f"{task} has no form with rewards at once")
    else:
        print(f"{task}, {arm}, seed {seed}")
        steps = args.steps or STEPS.get(task, STEPS_OF_OTHERS)
        curve = Curve(steps // args.rows)
        make_agent(task, seed, arm).learn(steps, callback=curve)
        write_rows(path, curve.rows)
        write_rows(args.out / "summary.csv", summary(args.out))


def summary(out: Path) -> list[dict[str, Any]]:
    """One row for each finished run: where it arrived, and the mean of its curve."""
    found = []
    for path in sorted(out.glob("*/*-seed*.csv")):
        with path.open() as file:
            rows = list(csv.DictReader(file))
        returns = [float(row["episode_return"]) for row in rows]
        arm, _, seed = path.stem.rpartition("-seed")
        found.append(
            {"task": path.parent.name, "arm": arm, "seed": seed,
             "env_steps": rows[-1]["env_steps"], "last_return": returns[-1],
             "mean_return": round(sum(returns) / len(returns), 4)}
        )  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", default=STUDY, help="by default those of the study")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
    parser.add_argument("--steps", type=int, help="of each run, instead of the study's")
    parser.add_argument("--rows", type=int, default=50, help="of the learning curve")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--out", type=Path, default=Path("results/replay"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    for seed in args.seeds:  # all arms of a seed first: they are compared
        for task in args.tasks:
            for arm in args.arms:
                train(task, arm, seed, args)


if __name__ == "__main__":
    main()
