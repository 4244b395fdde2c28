"""Stable-Baselines3's PPO on a task of long delays, with synthetic returns and without.

    python examples/sb3_ppo.py --seeds 0 1 2               # delayed Catch, 20 runs, 1.5 M steps
    python examples/sb3_ppo.py --seeds 0 1 2 --no-sr       # the same agent without them
    python examples/sb3_ppo.py --task key-to-door --seeds 0 1 2

The wrapper is one line, in ``make_envs``. A run writes its learning curve to
``results/wrappers/<task>/<arm>-seed<n>.csv`` and its state to ``runs/``: started again after it was
stopped it goes on, and a finished one is left alone. ``benchmarks/plot_wrappers.py`` draws all.
"""

import argparse
import csv
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import synthetic_returns as sr

# Beside these, the defaults of Stable-Baselines3. A reward that is close to its cause needs no long
# horizon (gamma), and short rollouts follow the changing synthetic returns (n_steps). These are
# small as long as they are not to be trusted: blown up to a common size (normalize_advantage), the
# policy would settle on the model's first guesses. Until then it has to stay curious (ent_coef).
PPO_SETTINGS = {"n_steps": 128, "batch_size": 256, "gamma": 0.9, "normalize_advantage": False}
ENVS = 16
# Where all reward comes at the end, it says nothing about the last action: beta 0.
TASKS = {
    "catch-delayed": {"id": "synthetic_returns/CatchDelayed-v0", "beta": 0.0, "ent_coef": 0.01},
    "key-to-door": {"id": "synthetic_returns/KeyToDoor-v0", "beta": 1.0, "ent_coef": 0.03},
}


def make_envs(args, seed, credit) -> Any:
    task = TASKS[args.task]
    parameters = {"runs": args.runs} if args.task == "catch-delayed" else {}
    envs = make_vec_env(task["id"], n_envs=ENVS, seed=seed, env_kwargs=parameters)
    if credit != "none":
        steps = envs.get_attr("unwrapped")[0].task.max_episode_steps
        envs = sr.SyntheticReturnsVecEnv(  # the one line
            envs, method=credit, beta=task["beta"], max_episode_steps=steps, seed=seed
        )
    return envs


class Recorder(BaseCallback):
    """Writes the learning curve, and saves the agent with the wrapper's state."""

    def __init__(self, run, rows, seconds, every):
        super().__init__()
        self.run, self.rows, self.every = run, rows, every
        self.start = time.monotonic() - seconds
        self.returns, self.successes = [], []

    def _on_training_start(self):
        self.success = np.zeros(self.training_env.num_envs)

    def _on_step(self):
        for i, info in enumerate(self.locals["infos"]):
            self.success[i] += info["success"]
            if "episode" in info:  # of the Monitor inside: the true return
                self.returns.append(info["episode"]["r"])
                self.successes.append(self.success[i])
                self.success[i] = 0
        return True

    def _on_rollout_end(self):
        written = self.rows[-1]["env_steps"] if self.rows else 0
        if self.num_timesteps - written < self.every or not self.returns:
            return
        row = {
            "env_steps": self.num_timesteps,
            "wall_s": round(time.monotonic() - self.start, 1),
            "episode_return": round(float(np.mean(self.returns)), 4),
            "success": round(float(np.mean(self.successes)), 4),
        }
        if self.run.credit != "none":
            report = self.run.envs.report()
            row |= {name: round(report[name], 4) for name in ("explained_variance", "trust")}
        self.rows.append(row)
        self.returns, self.successes = [], []
        print(self.run.name, row, flush=True)
        if len(self.rows) % 5 == 0:
            self.run.save(self.model, self.rows)


class Run:
    """The files of one agent."""

    def __init__(self, args, seed):
        self.credit = "none" if args.no_sr else "episodic"
        self.envs = make_envs(args, seed, self.credit)
        task = f"{args.task}-{args.runs}" if args.task == "catch-delayed" else args.task
        task += "-recurrent" if args.recurrent else ""
        self.name = f"{task}/{self.credit}-seed{seed}"
        self.csv = args.out / f"{self.name}.csv"
        self.summary = args.out / f"{self.name}.json"
        self.state = args.state / self.name

    def save(self, model, rows):
        self.state.mkdir(parents=True, exist_ok=True)
        model.save(self.state / "model.zip")
        if self.credit != "none":
            self.envs.save(self.state / "synthetic_returns.npz")
        self.write(rows)

    def write(self, rows):
        self.csv.parent.mkdir(parents=True, exist_ok=True)
        with self.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[-1], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    def rows(self):
        """The rows up to the saved state; numbers as numbers."""
        if not (self.state / "model.zip").exists():
            return []
        with self.csv.open(newline="") as file:
            return [{k: json.loads(v) for k, v in row.items()} for row in csv.DictReader(file)]


def train(args, seed):
    run = Run(args, seed)
    if run.summary.exists():
        print(f"{run.name} is finished: {run.summary}")
        return
    algorithm = RecurrentPPO if args.recurrent else PPO
    settings = PPO_SETTINGS | {"ent_coef": TASKS[args.task]["ent_coef"]}
    policy = "MlpLstmPolicy" if args.recurrent else "MlpPolicy"
    rows = run.rows()
    if rows:
        model = algorithm.load(run.state / "model.zip", run.envs, device="cpu")
        if run.credit != "none":
            run.envs.load(run.state / "synthetic_returns.npz")
    else:
        model = algorithm(policy, run.envs, seed=seed, device="cpu", **settings)
    recorder = Recorder(run, rows, rows[-1]["wall_s"] if rows else 0.0, args.steps // 100)
    if model.num_timesteps < args.steps:
        left = args.steps - model.num_timesteps
        model.learn(left, callback=recorder, reset_num_timesteps=not rows)
    run.save(model, recorder.rows)

    test_envs = make_envs(args, 10_000 + seed, credit="none")
    successes = 0

    def count(scope, _):
        nonlocal successes
        successes += scope["info"]["success"]

    returns, _ = evaluate_policy(
        model, test_envs, args.episodes, deterministic=False, callback=count,
        return_episode_rewards=True,
    )  # fmt: skip
    last = recorder.rows[-1]
    summary = {
        "task": run.name.split("/")[0],
        "credit": run.credit,
        "seed": seed,
        "algorithm": algorithm.__name__,
        "settings": settings | {"n_envs": ENVS},
        "env_steps": model.num_timesteps,
        "wall_s": last["wall_s"],
        "train_success": last["success"],
        "eval_episodes": args.episodes,
        "eval_return": float(np.mean(returns)),
        "eval_success": float(successes / args.episodes),
    }
    run.summary.write_text(json.dumps(summary, indent=2) + "\n")
    print(summary, flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", choices=TASKS, default="catch-delayed")
    parser.add_argument("--runs", type=int, default=20, help="balls in an episode of Catch")
    parser.add_argument("--steps", type=int, default=1_500_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--no-sr", action="store_true", help="without synthetic returns")
    parser.add_argument("--recurrent", action="store_true", help="RecurrentPPO instead of PPO")
    parser.add_argument("--episodes", type=int, default=200, help="of the evaluation at the end")
    parser.add_argument("--out", type=Path, default=Path("results/wrappers"))
    parser.add_argument("--state", type=Path, default=Path("runs/wrappers"))
    args = parser.parse_args()
    torch.set_num_threads(1)  # the networks are small: a second thread only costs
    for seed in args.seeds:
        train(args, seed)


if __name__ == "__main__":
    main()
