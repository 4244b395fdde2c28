"""DQN of TorchRL on delayed Catch; one line gives its replay buffer synthetic returns.

    pip install 'synthetic-returns[torchrl]'
    python examples/torchrl_dqn.py            # delayed Catch, 5 balls, with synthetic returns
    python examples/torchrl_dqn.py --no-sr    # without

Writes the learning curve of true returns to results/replay/torchrl-catch-<runs>/<arm>-seed<n>.csv,
or where ``--out`` says. A finished file is left alone.
"""

import argparse
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from curves import write_rows
from tensordict.nn import TensorDictSequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import GymWrapper
from torchrl.modules import EGreedyModule, QValueActor
from torchrl.objectives import DQNLoss, HardUpdate

import synthetic_returns as sr

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
parser.add_argument("--no-sr", action="store_true", help="without synthetic returns")
parser.add_argument("--runs", type=int, default=5, help="balls in an episode")
parser.add_argument("--steps", type=int, default=300_000)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", type=Path, default=Path("results/replay"))

BUFFER, STARTS, EVERY, BATCH = 100_000, 2_000, 40, 64
UPDATES = 10  # after every so many steps: one in four, as in cleanrl_dqn.py
LEARNING_RATE, GAMMA, TARGET_EVERY = 5e-4, 0.95, 250


def make_buffer(args, env) -> Any:
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(BUFFER), batch_size=BATCH)
    if not args.no_sr:
        buffer.append_transform(sr.CreditTransform(env, buffer.storage))  # the one line
    return buffer


def train(args, rows=50):
    """The rows of the learning curve."""
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)  # noqa: NPY002 - TorchRL draws from it
    env = gymnasium.make("synthetic_returns/CatchDelayed-v0", runs=args.runs)
    env = GymWrapper(env, categorical_action_encoding=True)
    env.set_seed(args.seed)
    shape, actions = env.observation_spec["observation"].shape, env.action_spec.n
    network = nn.Sequential(
        nn.Flatten(-len(shape)), nn.Linear(shape.numel(), 128), nn.ReLU(), nn.Linear(128, 128),
        nn.ReLU(), nn.Linear(128, actions),
    )  # fmt: skip
    actor = QValueActor(network, in_keys=["observation"], spec=env.action_spec)
    explore = EGreedyModule(env.action_spec, annealing_num_steps=args.steps // 2, eps_end=0.05)
    loss_of = DQNLoss(actor, action_space=env.action_spec, delay_value=True)
    loss_of.make_value_estimator(gamma=GAMMA)
    target = HardUpdate(loss_of, value_network_update_interval=TARGET_EVERY)
    optimizer = torch.optim.Adam(loss_of.parameters(), LEARNING_RATE)
    buffer = make_buffer(args, env)
    collector = Collector(
        env, TensorDictSequential(actor, explore), frames_per_batch=EVERY, total_frames=args.steps
    )
    total, returns, curve, step = 0.0, [], [], 0
    for data in collector:
        buffer.extend(data.reshape(-1))
        explore.step(data.numel())
        pairs = zip(data["next", "reward"][:, 0], data["next", "done"][:, 0], strict=True)
        for reward, done in pairs:
            total += float(reward)
            if done:
                returns.append(total)
                total = 0.0
        if len(buffer) > STARTS:
            for _ in range(UPDATES):
                loss = loss_of(buffer.sample())["loss"]
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                target.step()
        before, step = step, step + data.numel()
        if step * rows // args.steps > before * rows // args.steps and returns:
            mean = round(float(np.mean(returns[-100:])), 4)
            curve.append({"env_steps": step, "episode_return": mean})
            print(curve[-1], flush=True)
    collector.shutdown()
    return curve


if __name__ == "__main__":
    args = parser.parse_args()
    torch.set_num_threads(1)
    arm = "none" if args.no_sr else "relabelled"
    path = args.out / f"torchrl-catch-{args.runs}" / f"{arm}-seed{args.seed}.csv"
    if path.exists():
        raise SystemExit(f"{path} is finished; delete it to train again.")
    write_rows(path, train(args))
