"""PPO in one file, in the manner of CleanRL; one line gives it synthetic returns.

    python examples/cleanrl_ppo.py            # delayed Catch, 10 runs, with synthetic returns
    python examples/cleanrl_ppo.py --no-sr    # without

Writes the learning curve to results/wrappers/cleanrl-catch-delayed-10/<arm>-seed<n>.csv, or where
``--out`` says. A finished file is left alone.
"""

import argparse
import csv
import time
from pathlib import Path

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import flatdim
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from torch import nn

import synthetic_returns as sr

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
parser.add_argument("--no-sr", action="store_true", help="without synthetic returns")
parser.add_argument("--runs", type=int, default=10, help="balls in an episode")
parser.add_argument("--steps", type=int, default=500_000)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", type=Path, default=Path("results/wrappers"))

ENVS, STEPS, EPOCHS, BATCHES = 16, 128, 10, 8
LEARNING_RATE, GAMMA, LAMBDA, CLIP = 3e-4, 0.9, 0.95, 0.2
ENTROPY, VALUE, MAX_GRAD_NORM = 0.01, 0.5, 0.5


def make_envs(args):
    envs = gymnasium.make_vec("synthetic_returns/CatchDelayed-v0", num_envs=ENVS, runs=args.runs)
    envs = RecordEpisodeStatistics(envs)
    if not args.no_sr:
        envs = sr.SyntheticReturnsVectorWrapper(  # the one line
            envs, method="episodic", beta=0.0, seed=args.seed
        )
    return envs


class Agent(nn.Module):
    def __init__(self, observation_size, actions):
        super().__init__()

        def layer(n_in, n_out, scale=2**0.5):
            linear = nn.Linear(n_in, n_out)
            nn.init.orthogonal_(linear.weight, scale)
            nn.init.zeros_(linear.bias)
            return linear

        def network(n_out, scale):
            sizes = layer(observation_size, 64), layer(64, 64)
            return nn.Sequential(
                nn.Flatten(), sizes[0], nn.Tanh(), sizes[1], nn.Tanh(), layer(64, n_out, scale)
            )

        self.actor, self.critic = network(actions, 0.01), network(1, 1.0)

    def forward(self, observation):
        policy = torch.distributions.Categorical(logits=self.actor(observation))
        return policy, self.critic(observation)[..., 0]


def rollout(envs, agent, observation, done):
    """Plays; ``done`` marks steps that only start the next episode, nothing is learned there."""
    shape = (STEPS, ENVS)
    data = {name: torch.zeros(shape) for name in ("log_prob", "reward", "value", "done")}
    data |= {"observation": torch.zeros(*shape, *observation.shape[1:])}
    data |= {"action": torch.zeros(shape, dtype=torch.long)}
    returns = []
    for t in range(STEPS):
        x = torch.as_tensor(observation)
        with torch.no_grad():
            policy, value = agent(x)
        action = policy.sample()
        data["observation"][t], data["action"][t], data["value"][t] = x, action, value
        data["log_prob"][t], data["done"][t] = policy.log_prob(action), torch.as_tensor(done)
        observation, reward, terminated, truncated, info = envs.step(action.numpy())
        data["reward"][t] = torch.as_tensor(reward)
        done = terminated | truncated
        if "episode" in info:
            returns += info["episode"]["r"][info["_episode"]].tolist()
    return data, observation, done, returns


def advantages(agent, data, observation, done):
    """Generalised advantage estimates; an episode's end has no value."""
    with torch.no_grad():
        _, next_value = agent(torch.as_tensor(observation))
    next_done, running = torch.as_tensor(done).float(), torch.zeros(ENVS)
    result = torch.zeros_like(data["reward"])
    for t in reversed(range(STEPS)):
        goes_on = 1 - next_done
        error = data["reward"][t] + GAMMA * next_value * goes_on - data["value"][t]
        running = result[t] = error + GAMMA * LAMBDA * goes_on * running
        next_value, next_done = data["value"][t], data["done"][t]
    return result


def update(agent, optimizer, data, advantage):
    real = data["done"].flatten() == 0
    flat = {name: x.flatten(0, 1)[real] for name, x in data.items()}
    advantage = advantage.flatten()[real]
    target = advantage + flat["value"]
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(advantage)).chunk(BATCHES):
            policy, value = agent(flat["observation"][rows])
            ratio = (policy.log_prob(flat["action"][rows]) - flat["log_prob"][rows]).exp()
            weight = advantage[rows]  # not normalised: synthetic returns are small until trusted
            clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
            policy_loss = -torch.min(ratio * weight, clipped * weight).mean()
            value_loss = 0.5 * (value - target[rows]).square().mean()
            loss = policy_loss + VALUE * value_loss - ENTROPY * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), MAX_GRAD_NORM)
            optimizer.step()


def train(args):
    """The rows of the learning curve."""
    torch.manual_seed(args.seed)
    envs = make_envs(args)
    agent = Agent(flatdim(envs.single_observation_space), flatdim(envs.single_action_space))
    optimizer = torch.optim.Adam(agent.parameters(), LEARNING_RATE, eps=1e-5)
    observation, _ = envs.reset(seed=args.seed)
    done, rows, returns, start = np.zeros(ENVS, bool), [], [], time.monotonic()
    for count in range(1, args.steps // (ENVS * STEPS) + 1):
        data, observation, done, ended = rollout(envs, agent, observation, done)
        update(agent, optimizer, data, advantages(agent, data, observation, done))
        returns += ended
        if count % 5 == 0 and returns:
            row = {"env_steps": count * ENVS * STEPS, "wall_s": round(time.monotonic() - start, 1)}
            row["episode_return"] = round(float(np.mean(returns)), 4)
            row["success"] = round(row["episode_return"] / args.runs, 4)
            rows.append(row)
            returns = []
            print(row, flush=True)
    return rows


if __name__ == "__main__":
    args = parser.parse_args()
    torch.set_num_threads(1)
    arm = "none" if args.no_sr else "episodic"
    path = args.out / f"cleanrl-catch-delayed-{args.runs}" / f"{arm}-seed{args.seed}.csv"
    if path.exists():
        raise SystemExit(f"{path} is finished; delete it to train again.")
    rows = train(args)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
