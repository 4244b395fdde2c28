"""DQN in one file, in the manner of CleanRL; one line gives its replay buffer synthetic returns.

    python examples/cleanrl_dqn.py            # delayed Catch, 5 balls, with synthetic returns
    python examples/cleanrl_dqn.py --no-sr    # without

CleanRL's agents take the replay buffer of Stable-Baselines3, and so does this one. Writes the
learning curve to results/replay/cleanrl-catch-<runs>/<arm>-seed<n>.csv, or where ``--out`` says. A
finished file is left alone.
"""

import argparse
import time
from pathlib import Path

import gymnasium
import numpy as np
import torch
from curves import write_rows
from stable_baselines3.common.buffers import ReplayBuffer
from torch import nn

import synthetic_returns as sr

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
parser.add_argument("--no-sr", action="store_true", help="without synthetic returns")
parser.add_argument("--runs", type=int, default=5, help="balls in an episode")
parser.add_argument("--steps", type=int, default=300_000)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", type=Path, default=Path("results/replay"))

BUFFER, STARTS, EVERY, BATCH = 100_000, 2_000, 4, 64
LEARNING_RATE, GAMMA, TARGET_EVERY = 5e-4, 0.95, 1_000
FIRST_EPSILON, LAST_EPSILON, EXPLORED = 1.0, 0.05, 0.5


def make_buffer(args, env):
    buffer = ReplayBuffer if args.no_sr else sr.CreditReplayBuffer  # the one line
    return buffer(BUFFER, env.observation_space, env.action_space, device="cpu")


class QNetwork(nn.Module):
    def __init__(self, observation_size, actions):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(observation_size, 128), nn.ReLU(), nn.Linear(128, 128),
            nn.ReLU(), nn.Linear(128, actions),
        )  # fmt: skip

    def forward(self, observation):
        return self.layers(observation.float())


def update(network, target, optimizer, batch):
    with torch.no_grad():
        best = target(batch.next_observations).max(dim=1, keepdim=True).values
        wanted = batch.rewards + GAMMA * (1 - batch.dones) * best
    value = network(batch.observations).gather(1, batch.actions.long())
    loss = nn.functional.smooth_l1_loss(value, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(args, rows=50):
    """The rows of the learning curve."""
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)  # noqa: NPY002 - the buffer draws from it
    rng = np.random.default_rng(args.seed)
    env = gymnasium.make("synthetic_returns/CatchDelayed-v0", runs=args.runs)
    size, actions = int(np.prod(env.observation_space.shape or ())), int(env.action_space.n)  # pyright: ignore
    network, target = QNetwork(size, actions), QNetwork(size, actions)
    target.load_state_dict(network.state_dict())
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    buffer = make_buffer(args, env)
    observation, _ = env.reset(seed=args.seed)
    total, returns, curve, start = 0.0, [], [], time.monotonic()
    for step in range(1, args.steps + 1):
        share = min(1.0, step / (EXPLORED * args.steps))
        if rng.random() < FIRST_EPSILON + share * (LAST_EPSILON - FIRST_EPSILON):
            action = int(rng.integers(actions))
        else:
            with torch.no_grad():
                action = int(network(torch.as_tensor(observation)[None]).argmax())
        after, reward, terminated, truncated, _ = env.step(action)
        total += float(reward)
        done, info = terminated or truncated, {"TimeLimit.truncated": truncated and not terminated}
        buffer.add(
            np.asarray(observation)[None], np.asarray(after)[None], np.array([action]),
            np.array([reward], np.float32), np.array([done]), [info],
        )  # fmt: skip
        observation = after
        if done:
            returns.append(total)
            total = 0.0
            observation, _ = env.reset()
        if step > STARTS and step % EVERY == 0:
            update(network, target, optimizer, buffer.sample(BATCH))
        if step % TARGET_EVERY == 0:
            target.load_state_dict(network.state_dict())
        if step % (args.steps // rows) == 0 and returns:
            curve.append(
                {
                    "env_steps": step,
                    "wall_s": round(time.monotonic() - start, 1),
                    "episode_return": round(float(np.mean(returns[-100:])), 4),
                }
            )
            print(curve[-1], flush=True)
    return curve


if __name__ == "__main__":
    args = parser.parse_args()
    torch.set_num_threads(1)
    arm = "none" if args.no_sr else "relabelled"
    path = args.out / f"cleanrl-catch-{args.runs}" / f"{arm}-seed{args.seed}.csv"
    if path.exists():
        raise SystemExit(f"{path} is finished; delete it to train again.")
    write_rows(path, train(args))
