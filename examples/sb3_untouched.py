"""Stable-Baselines3's PPO as it comes, on an environment that pays everything at the end.

    python examples/sb3_untouched.py CartPole-v1 --seeds 0 1 2                  # with the one line
    python examples/sb3_untouched.py CartPole-v1 --seeds 0 1 2 --arm none       # without
    python examples/sb3_untouched.py CartPole-v1 --seeds 0 1 2 --arm dense      # rewards at once
    python examples/sb3_untouched.py synthetic_returns/CatchDelayed-v0 --make runs=10 --steps 500000
    python examples/sb3_untouched.py synthetic_returns/KeyToDoor-v0 --as-paid --steps 1000000

Any Gymnasium environment will do; ``--as-paid`` leaves its rewards where they are. All settings of
PPO but the number of environments and the length of a rollout are its defaults, and none of the
wrapper's is set. A run writes its learning curve of true returns to
``results/untouched/<environment>/<arm>-seed<n>.csv``; a finished one is left alone.
"""

import argparse
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import torch
from curves import write_rows
from paid_at_the_end import PaidAtTheEnd
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv

import synthetic_returns as sr

ENVS = 16
PPO_SETTINGS: dict[str, Any] = {"n_steps": 128, "batch_size": 256}
ROWS = 50


def make_envs(args: argparse.Namespace, seed: int) -> VecEnv:
    delayed = None if args.as_paid or args.arm == "dense" else PaidAtTheEnd
    parameters = {name: int(value) for name, _, value in (x.partition("=") for x in args.make)}
    envs = make_vec_env(
        args.env, n_envs=ENVS, seed=seed, wrapper_class=delayed, env_kwargs=parameters
    )
    if args.arm == "advance":
        envs = sr.SyntheticReturnsVecEnv(envs, seed=seed)  # the one line
    return envs


class Curve(BaseCallback):
    """The mean true return of the last 100 episodes, and how many succeeded where this is told."""

    def __init__(self, every: int):
        super().__init__()
        self.every, self.rows, self.start = every, [], time.monotonic()
        self.successes: deque[float] = deque(maxlen=100)

    def _on_step(self) -> bool:
        for done, info in zip(self.locals["dones"], self.locals["infos"], strict=True):
            if done and "success" in info:
                self.successes.append(float(info["success"]))
        finished = self.model.ep_info_buffer  # of the Monitor inside: true returns
        if self.num_timesteps >= self.every * (len(self.rows) + 1) and finished:
            row = {
                "env_steps": self.num_timesteps,
                "wall_s": round(time.monotonic() - self.start, 1),
                "episode_return": round(float(np.mean([one["r"] for one in finished])), 2),
            }
            if self.successes:
                row["success"] = round(float(np.mean(self.successes)), 4)
            self.rows.append(row)
            print(row, flush=True)
        return True


def train(args: argparse.Namespace, seed: int) -> None:
    paid = ["as-paid"] if args.as_paid else []
    name = "-".join([args.env.rpartition("/")[2], *args.make, *paid])
    path = args.out / name / f"{args.arm}-seed{seed}.csv"
    if path.exists():
        print(f"{path} is finished")
        return
    curve = Curve(args.steps // ROWS)
    envs = make_envs(args, seed)
    model = PPO("MlpPolicy", envs, seed=seed, device="cpu", **PPO_SETTINGS)
    model.learn(args.steps, callback=curve)
    write_rows(path, curve.rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("env", help="id of a Gymnasium environment")
    parser.add_argument("--arm", choices=("advance", "none", "dense"), default="advance")
    parser.add_argument("--make", nargs="+", default=[], metavar="NAME=NUMBER", help="of the task")
    parser.add_argument("--as-paid", action="store_true", help="do not move rewards to the end")
    parser.add_argument("--steps", type=int, default=150_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--out", type=Path, default=Path("results/untouched"))
    args = parser.parse_args()
    torch.set_num_threads(1)  # the networks are small: a second thread only costs
    for seed in args.seeds:
        train(args, seed)


if __name__ == "__main__":
    main()
