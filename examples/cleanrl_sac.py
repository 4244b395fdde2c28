"""SAC in one file, in the manner of CleanRL; one line gives its replay buffer synthetic returns.

    python examples/cleanrl_sac.py            # Pendulum, paid at the end, with synthetic returns
    python examples/cleanrl_sac.py --no-sr    # without
    python examples/cleanrl_sac.py --env HalfCheetah-v5    # pip install 'synthetic-returns[mujoco]'

CleanRL's agents take the replay buffer of Stable-Baselines3, and so does this one. Writes the
learning curve of true returns to results/replay/cleanrl-<env>/<arm>-seed<n>.csv, or where ``--out``
says. A finished file is left alone.
"""

import argparse
import time
from pathlib import Path

import gymnasium
import numpy as np
import torch
from curves import write_rows
from paid_at_the_end import PaidAtTheEnd
from stable_baselines3.common.buffers import ReplayBuffer
from torch import nn

import synthetic_returns as sr

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
parser.add_argument("--no-sr", action="store_true", help="without synthetic returns")
parser.add_argument("--env", default="Pendulum-v1", help="any with continuous actions")
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", type=Path, default=Path("results/replay"))

BUFFER, STARTS, BATCH = 1_000_000, 5_000, 256
GAMMA, TAU = 0.99, 0.005
POLICY_RATE, Q_RATE, POLICY_EVERY = 3e-4, 1e-3, 2
LEAST_LOG_STD, MOST_LOG_STD = -5, 2


def make_buffer(args, env):
    buffer = ReplayBuffer if args.no_sr else sr.CreditReplayBuffer  # the one line
    size = min(BUFFER, args.steps)
    return buffer(size, env.observation_space, env.action_space, device="cpu")


def mlp(inputs, outputs):
    return nn.Sequential(
        nn.Linear(inputs, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, outputs)
    )


class Actor(nn.Module):
    def __init__(self, inputs, space):
        super().__init__()
        self.layers = mlp(inputs, 2 * space.shape[0])
        scale, centre = (space.high - space.low) / 2, (space.high + space.low) / 2
        self.scale = torch.tensor(scale, dtype=torch.float32)
        self.centre = torch.tensor(centre, dtype=torch.float32)

    def forward(self, observation):
        """An action, and the logarithm of its density."""
        mean, log_std = self.layers(observation).chunk(2, dim=-1)
        between = MOST_LOG_STD - LEAST_LOG_STD
        log_std = LEAST_LOG_STD + between * (torch.tanh(log_std) + 1) / 2
        normal = torch.distributions.Normal(mean, log_std.exp())
        sampled = normal.rsample()
        squashed = torch.tanh(sampled)
        density = normal.log_prob(sampled) - torch.log(self.scale * (1 - squashed**2) + 1e-6)
        return squashed * self.scale + self.centre, density.sum(-1, keepdim=True)


class Agent:
    def __init__(self, env):
        inputs, actions = env.observation_space.shape[0], env.action_space.shape[0]
        self.actor = Actor(inputs, env.action_space)
        self.critics, self.targets = (
            nn.ModuleList([mlp(inputs + actions, 1) for _ in range(2)]) for _ in range(2)
        )
        self.targets.load_state_dict(self.critics.state_dict())
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.wanted_entropy = -actions
        self.of_critics = torch.optim.Adam(self.critics.parameters(), Q_RATE)
        self.of_actor = torch.optim.Adam(self.actor.parameters(), POLICY_RATE)
        self.of_alpha = torch.optim.Adam([self.log_alpha], Q_RATE)

    def update(self, batch, with_policy):
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            action, density = self.actor(batch.next_observations)
            after = torch.cat([batch.next_observations, action], -1)
            least = torch.min(*(critic(after) for critic in self.targets)) - alpha * density
            wanted = batch.rewards + GAMMA * (1 - batch.dones) * least
        now = torch.cat([batch.observations, batch.actions], -1)
        loss = sum(nn.functional.mse_loss(critic(now), wanted) for critic in self.critics)
        step(self.of_critics, loss)
        for _ in range(POLICY_EVERY if with_policy else 0):  # makes up for the updates left out
            action, density = self.actor(batch.observations)
            doing = torch.cat([batch.observations, action], -1)
            value = torch.min(*(critic(doing) for critic in self.critics))
            step(self.of_actor, (alpha * density - value).mean())
            error = (density.detach() + self.wanted_entropy).mean()
            step(self.of_alpha, -self.log_alpha.exp() * error)
        with torch.no_grad():
            pairs = zip(self.critics.parameters(), self.targets.parameters(), strict=True)
            for parameter, target in pairs:
                target.lerp_(parameter, TAU)


def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(args, rows=50, starts=STARTS):
    """The rows of the learning curve."""
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)  # noqa: NPY002 - the buffer draws from it
    env = gymnasium.wrappers.DtypeObservation(gymnasium.make(args.env), np.float32)
    env = PaidAtTheEnd(env)
    env.action_space.seed(args.seed)
    agent, buffer = Agent(env), make_buffer(args, env)
    observation, _ = env.reset(seed=args.seed)
    returns, curve, start = [], [], time.monotonic()
    for number in range(1, args.steps + 1):
        if number <= starts:
            action = env.action_space.sample()
        else:
            with torch.no_grad():
                inputs = torch.as_tensor(observation, dtype=torch.float32)
                action = agent.actor(inputs)[0].numpy()
        after, reward, terminated, truncated, _ = env.step(action)
        done, info = terminated or truncated, {"TimeLimit.truncated": truncated and not terminated}
        buffer.add(
            observation[None], after[None], action[None],
            np.array([reward], np.float32), np.array([done]), [info],
        )  # fmt: skip
        observation = after
        if done:
            returns.append(float(reward))  # all of it is paid at the end
            observation, _ = env.reset()
        if number > starts:
            agent.update(buffer.sample(BATCH), with_policy=number % POLICY_EVERY == 0)
        if number % (args.steps // rows) == 0 and returns:
            curve.append(
                {
                    "env_steps": number,
                    "wall_s": round(time.monotonic() - start, 1),
                    "episode_return": round(float(np.mean(returns[-100:])), 2),
                }
            )
            print(curve[-1], flush=True)
    return curve


if __name__ == "__main__":
    args = parser.parse_args()
    torch.set_num_threads(1)
    arm = "none" if args.no_sr else "relabelled"
    path = args.out / f"cleanrl-{args.env.rpartition('/')[2]}" / f"{arm}-seed{args.seed}.csv"
    if path.exists():
        raise SystemExit(f"{path} is finished; delete it to train again.")
    write_rows(path, train(args))
